"""The operators that modules are drawn from, each as a text of PyTorch with places to fill in."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from differential.case import FLOATS, INTS, NAME, Case, Draw, Kind, Unfit, Value

NUMBERS = FLOATS + INTS
ANY = (*NUMBERS, torch.bool)
PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Operator:
    """`text` has {x} for the operand and other names for what `FILL` draws; `ranks` of the operand, both included."""

    text: str
    kind: Kind
    types: tuple[torch.dtype, ...] = FLOATS
    ranks: tuple[int, int] = (0, 4)
    draw: Callable[[Draw, Value], str] | None = None

    def takes(self, value: Value) -> bool:
        return value.dtype in self.types and self.ranks[0] <= len(value.shape) <= self.ranks[1]

    def write(self, draw: Draw, value: Value) -> str:
        if self.draw:
            return self.draw(draw, value)
        return PLACE.sub(lambda place: str(FILL[place[1]](draw, value)), self.text)


def other(draw: Draw, x: Value) -> str:
    return draw.operand(draw.broadcast(x), x.dtype).name


def mixed(draw: Draw, x: Value) -> str:
    return draw.operand(draw.broadcast(x), draw.pick([t for t in NUMBERS if t != x.dtype])).name


def condition(draw: Draw, x: Value) -> str:
    return draw.operand(draw.broadcast(x), torch.bool).name


def same(draw: Draw, x: Value) -> str:
    return draw.operand(draw.extents(x), x.dtype).name


def weight(draw: Draw, dims: list[int], x: Value) -> str:
    if 0 in dims:
        raise Unfit
    return draw.new(dims, x.dtype, constant=True).name


def bounds(draw: Draw, x: Value) -> str:
    low, high = sorted([draw.scalar(x.dtype), draw.scalar(x.dtype)])
    return draw.pick([f"{low}, {high}", f"min={low}", f"max={high}"])


def pair(choices: list[int]) -> Callable[[Draw, Value], str]:
    return lambda draw, x: draw.pick([str(draw.pick(choices)), str((draw.pick(choices), draw.pick(choices)))])


def extents_text(draw: Draw, x: Value) -> list[str]:
    """The extents of `x` as they are written in a module: a dynamic one is asked for."""
    return [str(n) if len({s.shape[i] for s in x.samples}) == 1 else f"{x.name}.shape[{i}]" for i, n in enumerate(x.shape)]


def view(draw: Draw, x: Value) -> str:
    dims = extents_text(draw, x)
    if not dims:
        return str(draw.pick([[1], [], [1, 1]]))
    way = draw.random.random()
    if way < 0.2:
        return "[-1]"
    if way < 0.4:
        place = draw.random.randrange(len(dims))
        dims.insert(place, "1")
    elif way < 0.7 and len(dims) > 1:
        place = draw.random.randrange(len(dims) - 1)
        dims[place : place + 2] = [draw.pick(["-1", f"{dims[place]} * {dims[place + 1]}"])]
    else:
        place = draw.random.randrange(len(dims))
        n = draw.pick([2, 3, 4])
        dims[place : place + 1] = draw.pick([[f"{dims[place]} // {n}", str(n)], [str(n), "-1"]])
    return f"[{', '.join(dims)}]"


def expand(draw: Draw, x: Value) -> str:
    dims = extents_text(draw, x)
    dims = [str(draw.pick([2, 3, 5])) if n == "1" else draw.pick(["-1", n]) for n in dims]
    if draw.chance(0.3):
        dims.insert(0, str(draw.pick([1, 2, 3])))
    return ", ".join(dims) if dims else "3"


def repeats(draw: Draw, x: Value) -> list[int]:
    return [draw.pick([1, 1, 2, 3]) for _ in range(len(x.shape) + draw.chance(0.3))]


def part(draw: Draw, x: Value) -> str:
    """A slice of one dimension, in Python's brackets."""
    place = draw.dim(x) % len(x.shape)
    ends = [draw.pick(["", str(draw.random.randint(-3, 3)), str(draw.random.randint(-3, 40))]) for _ in range(2)]
    dims = extents_text(draw, x)
    if not dims[place].isdigit() and draw.chance(0.4):
        ends[1] = draw.pick([f"{dims[place]} // 2", f"{dims[place]} - 1"])
    step = draw.pick(["", ":1", ":2", ":3"])
    return ", ".join([":"] * place + [f"{ends[0]}:{ends[1]}{step}"])


def place(draw: Draw, x: Value) -> str:
    dim = draw.dim(x)
    n = min(sample.shape[dim] for sample in x.samples)
    if n == 0:
        raise Unfit
    return f"{dim}, {draw.random.randrange(-n, n)}"


def sections(draw: Draw, x: Value) -> str:
    dim = draw.dim(x)
    n = x.shape[dim]
    if len({sample.shape[dim] for sample in x.samples}) > 1 or n == 0:
        raise Unfit
    cut = draw.random.randint(0, n)
    if n == 1 or draw.chance(0.5):
        return f"[{cut}, {n - cut}], {dim}"
    return f"{draw.random.randint(max(1, n // 4), n - 1)}, {dim}"


def halves(draw: Draw, x: Value) -> str:
    """The exporter fails for a single part."""
    dim = draw.dim(x)
    if min(sample.shape[dim] for sample in x.samples) < 2:
        raise Unfit
    return f"{draw.pick([2, 3])}, {dim}"


def scalar(draw: Draw, x: Value) -> int | float:
    """Of a tensor without dimensions: none that the exporter, which writes scalars as such tensors, would give a type that
    outweighs that of `x`."""
    if not x.shape and x.dtype in (torch.float16, torch.int32):
        raise Unfit
    return draw.scalar(x.dtype)


def pads(draw: Draw, x: Value) -> str:
    if len(x.shape) == 0:
        raise Unfit
    sizes = [draw.pick([0, 1, 2, 3, -1]) for _ in range(2 * draw.random.randint(1, len(x.shape)))]
    value = draw.pick(["", f", value={draw.scalar(x.dtype) if x.dtype != torch.bool else True}"])
    return f"{sizes}{value}"


def others(draw: Draw, x: Value) -> str:
    """Tensors to join with `x`, and the dimension."""
    dim = draw.dim(x)
    names = [x.name]
    for _ in range(draw.random.randint(0, 3)):
        dims = draw.extents(x)
        if dims[dim] is not None and draw.chance(0.7):
            dims[dim] = draw.pick([1, 2, 3, 5])
        names.insert(draw.random.randint(0, len(names)), draw.operand(dims, x.dtype).name)
    return f"[{', '.join(names)}], {dim}"


def alike(draw: Draw, x: Value) -> str:
    names = [x.name] + [draw.operand(draw.extents(x), x.dtype).name for _ in range(draw.random.randint(0, 2))]
    return f"[{', '.join(names)}], {draw.dim(x, 1)}"


def picks(draw: Draw, x: Value, dims: list[int | None], bound: int, dtype: torch.dtype) -> str:
    """Indices below `bound`."""
    if bound == 0:
        raise Unfit
    make = lambda shape: torch.randint(0, bound, shape, generator=draw.generator).to(dtype)  # noqa: E731
    if None not in dims and draw.chance(0.5):
        return draw.new(dims, dtype, True, make(dims)).name
    return draw.new(dims, dtype, False, make).name


def index_select(draw: Draw, x: Value) -> str:
    dim = draw.dim(x)
    bound = min(sample.shape[dim] for sample in x.samples)
    index = picks(draw, x, draw.shape(1, 9), bound, draw.pick(INTS))
    return f"torch.index_select({x.name}, {dim}, {index})"


def index(draw: Draw, x: Value) -> str:
    dim = draw.dim(x) % len(x.shape)
    bound = min(sample.shape[dim] for sample in x.samples)
    return f"{x.name}[{':, ' * dim}{picks(draw, x, draw.shape(1, 9), bound, draw.pick(INTS))}]"


def gather(draw: Draw, x: Value) -> str:
    dim = draw.dim(x)
    dims = draw.extents(x)
    bound = min(sample.shape[dim] for sample in x.samples)
    dims = [n if n is None or draw.chance(0.6) else max(1, n // 2) for n in dims]
    if dims[dim] is not None and draw.chance(0.5):
        dims[dim] = draw.pick([1, 2, 7])
    return f"torch.gather({x.name}, {dim}, {picks(draw, x, dims, bound, torch.int64)})"


def embedding(draw: Draw, x: Value) -> str:
    table = x if None not in draw.extents(x) and draw.chance(0.3) else None
    name = table.name if table else draw.new([draw.pick([5, 17, 33]), draw.pick([1, 4, 7, 16])], x.dtype, True).name
    rows = next(v for v in draw.values + draw.case.constants if v.name == name).shape[0]
    return f"F.embedding({picks(draw, x, draw.shape(draw.pick([1, 1, 2, 3]), 60), rows, draw.pick(INTS))}, {name})"


def fixed(x: Value, dim: int) -> int:
    """The extent of a dimension that does not change."""
    sizes = {sample.shape[dim] for sample in x.samples}
    if len(sizes) > 1 or 0 in sizes:
        raise Unfit
    return sizes.pop()


def linear(draw: Draw, x: Value) -> str:
    k, n = fixed(x, -1), draw.pick([1, 2, 3, 4, 7, 8, 16, 33, 65])
    bias = draw.pick(["", f", {weight(draw, [n], x)}"])
    return f"F.linear({x.name}, {weight(draw, [n, k], x)}{bias})"


def product(draw: Draw, x: Value) -> str:
    """mm, bmm or matmul."""
    dims = draw.extents(x)
    n = draw.pick([1, 2, 4, 5, 8, 33])
    batch = dims[:-2]
    if draw.chance(0.2):
        batch = []
    if dims[-1] is None and draw.chance(0.5):
        raise Unfit
    y = draw.operand([*batch, dims[-1], n], x.dtype)
    return draw.pick([f"torch.matmul({x.name}, {y.name})", f"{x.name} @ {y.name}"])


def transposed_product(draw: Draw, x: Value) -> str:
    dims = draw.extents(x)
    y = draw.operand([*dims[:-2], draw.pick([1, 3, 4, 8]), dims[-1]], x.dtype)
    return f"torch.matmul({x.name}, {y.name}.transpose(-1, -2))"


def addmm(draw: Draw, x: Value) -> str:
    (m, k), n = draw.extents(x), draw.pick([1, 2, 4, 7, 33])
    c = draw.operand(draw.pick([[n], [1, n], [m, n], [m, 1], [1]]), x.dtype)
    factors = draw.pick(["", "", f", beta={draw.scalar(x.dtype)}, alpha={draw.scalar(x.dtype)}"])
    return f"torch.addmm({c.name}, {x.name}, {draw.operand([k, n], x.dtype).name}{factors})"


def convolution(draw: Draw, x: Value) -> str:
    flat = len(x.shape) == 3
    channels = fixed(x, 1)
    if not flat and fixed(x, 0) != 1:
        raise Unfit
    ways = 1 if flat else 2
    groups = draw.pick([g for g in (1, 1, 2, channels) if channels % g == 0])
    made = groups * draw.pick([1, 2, 3, 4])
    kernel = [draw.pick([1, 2, 3, 5]) for _ in range(ways)]
    stride, dilation = ([draw.pick([1, 1, 2, 3]) for _ in range(ways)] for _ in range(2))
    padding = [draw.random.randint(0, k) for k in kernel]
    transposed = not flat and draw.chance(0.3)
    if transposed:
        extra = [draw.random.randrange(max(s, d)) for s, d in zip(stride, dilation)]
        w = weight(draw, [channels, made // groups, *kernel], x)
        rest = f"{stride}, {padding}, {extra}, {groups}, {dilation}"
    else:
        w = weight(draw, [made, channels // groups, *kernel], x)
        rest = f"{stride}, {padding}, {dilation}, {groups}"
    bias = weight(draw, [made], x) if draw.chance(0.6) else None
    text = f"F.conv{'_transpose' * transposed}{ways}d({x.name}, {w}, {bias}, {rest})"
    return draw.pick([text, text, f"F.relu({text})", f"F.relu6({text})", f"torch.clamp({text}, -1.5, 2)"])


def layer_norm(draw: Draw, x: Value) -> str:
    count = draw.pick([1, 1, 2]) if len(x.shape) > 1 else 1
    dims = [fixed(x, i) for i in range(-count, 0)]
    affine = draw.pick(["", f", {weight(draw, dims, x)}", f", {weight(draw, dims, x)}, {weight(draw, dims, x)}"])
    return f"F.layer_norm({x.name}, {dims}{affine})"


def rms_norm(draw: Draw, x: Value) -> str:
    dims = [fixed(x, -1)]
    return f"F.rms_norm({x.name}, {dims}{draw.pick(['', f', {weight(draw, dims, x)}', f', {weight(draw, dims, x)}, 1e-5'])})"


def group_norm(draw: Draw, x: Value) -> str:
    channels = fixed(x, 1)
    groups = draw.pick([g for g in (1, 2, 3, channels) if channels % g == 0])
    affine = draw.pick(["", f", {weight(draw, [channels], x)}, {weight(draw, [channels], x)}"])
    return f"F.group_norm({x.name}, {groups}{affine})"


def batch_norm(draw: Draw, x: Value) -> str:
    c = [fixed(x, 1)]
    variance = draw.new(c, x.dtype, True, torch.rand(c, generator=draw.generator).to(x.dtype) + 0.5)
    affine = draw.pick(["", f", {weight(draw, c, x)}, {weight(draw, c, x)}"])
    return f"F.batch_norm({x.name}, {weight(draw, c, x)}, {variance.name}{affine})"


def pool(draw: Draw, x: Value) -> str:
    kernel = [draw.pick([1, 2, 3, 4]) for _ in range(2)]
    padding = [draw.random.randint(0, k // 2) for k in kernel]
    stride = draw.pick([[], [draw.pick([1, 2, 3]) for _ in range(2)]])
    return f"{kernel}, {stride or None}, {padding}"


def average(draw: Draw, x: Value) -> str:
    divisor = draw.pick(["None", "None", "3"])
    return f"F.avg_pool2d({x.name}, {pool(draw, x)}, {draw.chance(0.5)}, {draw.chance(0.5)}, {divisor})"


def maximum(draw: Draw, x: Value) -> str:
    text = f"{x.name}, {pool(draw, x)}, {draw.pick([1, 1, 2])}, {draw.chance(0.5)}"
    return draw.pick([f"F.max_pool2d({text})", f"F.max_pool2d({text}, return_indices=True)"])


def resize(draw: Draw, x: Value) -> str:
    mode = draw.pick(['"nearest"', '"bilinear"', '"bilinear", align_corners=True'])
    rows, columns = (draw.pick([1, 2, 5, 8, 13]) for _ in range(2))
    to = draw.pick([f"size=({rows}, {columns})", f"scale_factor={draw.pick([0.5, 1.5, 2.0, (2.0, 3.0), (1.6, 0.7)])}"])
    return f"F.interpolate({x.name}, {to}, mode={mode})"


def grid(draw: Draw, x: Value) -> str:
    n = draw.extents(x)[0]
    made = draw.new([n, draw.pick([1, 3, 6]), draw.pick([2, 5]), 2], x.dtype)
    return f'F.grid_sample({x.name}, {made.name}, "bilinear", "border", align_corners=True)'


def attention(draw: Draw, x: Value) -> str:
    b, heads, rows, width = draw.extents(x)
    keys = draw.pick([1, 3, 8, 17])
    k = draw.operand([b, heads, keys, width], x.dtype)
    v = draw.operand([b, heads, keys, draw.pick([width, width, 5])], x.dtype)
    mask = draw.operand(draw.pick([[rows, keys], [b, 1, rows, keys]]), x.dtype).name if draw.chance(0.4) else None
    return f"F.scaled_dot_product_attention({x.name}, {k.name}, {v.name}, {mask})"


def static(draw: Draw, x: Value) -> list[int]:
    """Dimensions that do not change: torch.export takes a dynamic one for other than 1, and then eager differs at 1."""
    return [place for place in draw.dims(x) if len({sample.shape[place] for sample in x.samples}) == 1]


def shape_of(draw: Draw, x: Value) -> str:
    return f"({''.join(f'{n}, ' for n in extents_text(draw, x))})"


FILL: dict[str, Callable[[Draw, Value], object]] = {
    "x": lambda draw, x: x.name,
    "y": other,
    "z": mixed,
    "same": same,
    "b": condition,
    "s": scalar,
    "halves": halves,
    # Not one half: as an exponent eager makes it a root, which has none of minus infinity, in float32 and not in float16.
    "r": lambda draw, x: draw.pick([2, 3, 0.75, -1, 1.5, 0, 4, -2.5]),
    "bounds": bounds,
    "dim": Draw.dim,
    "newdim": lambda draw, x: draw.dim(x, 1),
    "dims": Draw.dims,
    "static": static,
    "keep": lambda draw, x: draw.pick(["", ", keepdim=True", ", keepdim=True"]),
    "perm": lambda draw, x: draw.random.sample(range(len(x.shape)), len(x.shape)),
    "view": view,
    "expand": expand,
    "repeats": repeats,
    "part": part,
    "place": place,
    "sections": sections,
    "pads": pads,
    "others": others,
    "alike": alike,
    "shape": shape_of,
    "type": lambda draw, x: draw.pick(["torch.float32", "torch.float16", "torch.int32", "torch.int64", "torch.bool"]),
    "wider": lambda draw, x: draw.pick(["torch.float32", "torch.float16"]),
    "n": lambda draw, x: draw.pick([1, 2, 3]),
    "size": lambda draw, x: draw.pick(extents_text(draw, x) or ["5"]),
}

M, S, R, J = Kind.MOVES, Kind.SUMS, Kind.ROUNDS, Kind.JUMPS
OPERATORS = [
    # Of one tensor
    *(Operator(f"torch.{name}({{x}})", R) for name in
      ("exp", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "log10", "square")),
    *(Operator(f"F.{name}({{x}})", R) for name in
      ("hardswish", "silu", "gelu", "hardsigmoid", "tanhshrink", "softsign")),
    Operator('F.gelu({x}, approximate="tanh")', R),
    Operator("F.leaky_relu({x}, {r})", R),
    *(Operator(text, S, NUMBERS) for text in ("torch.abs({x})", "-{x}", "F.relu({x})")),
    Operator("F.hardtanh({x}, {bounds})", S),
    Operator("F.relu6({x})", S),
    Operator("torch.clamp({x}, {bounds})", S, NUMBERS),
    Operator("torch.round({x})", J),
    Operator("F.hardshrink({x}, {n})", J),
    Operator("torch.pow({x}, {r})", R),
    # Of two
    *(Operator(text, S, NUMBERS, (0, 8)) for text in
      ("{x} + {y}", "{y} - {x}", "{x} * {y}", "torch.add({x}, {y}, alpha={n})", "torch.sub({x}, {y}, alpha={n})",
       "torch.minimum({x}, {y})", "torch.maximum({x}, {y})", "{x} + {s}", "{s} - {x}", "{x} * {s}", "{x} + {x}")),
    *(Operator(text, R, NUMBERS, (0, 8)) for text in ("{x} / {y}", "{x} / {s}", "{s} / {x}")),
    *(Operator(text, S, NUMBERS) for text in ("{x} + {z}", "{x} * {z}", "{z} - {x}")),
    *(Operator(text, J, NUMBERS, (0, 8)) for text in ('torch.div({x}, {y}, rounding_mode="floor")', "{x} // {s}")),
    Operator("torch.pow(torch.abs({x}), {y})", R),
    Operator("torch.pow({x}, {y})", R),
    *(Operator(f"torch.{name}({{x}}, {{y}})", J, NUMBERS, (0, 8)) for name in ("eq", "lt", "le", "gt", "ge")),
    *(Operator(f"{{x}} {sign} {{s}}", J, NUMBERS, (0, 8)) for sign in ("==", "!=", "<", "<=", ">", ">=")),
    Operator("{x} > {z}", J, NUMBERS),
    *(Operator(text, M, (torch.bool,), (0, 8)) for text in
      ("torch.logical_and({x}, {y})", "torch.logical_or({x}, {y})", "torch.logical_not({x})", "{x} & {y}", "{x} | {y}", "~{x}")),
    Operator("torch.where({b}, {x}, {y})", M, NUMBERS),
    Operator("torch.where({b}, {x}, {s})", M, NUMBERS),
    Operator("{x}.masked_fill({b}, {s})", M, NUMBERS),
    # Over dimensions
    *(Operator(f"torch.{name}({{x}}, {{dims}}{{keep}})", S, FLOATS, (1, 5)) for name in ("sum", "mean", "amax", "amin")),
    Operator("torch.sum({x}, {dims}{keep})", S, (*INTS, torch.bool), (1, 4)),
    *(Operator(f"torch.{name}({{x}}, {{dim}}{{keep}})", J, FLOATS, (1, 5)) for name in ("argmax", "argmin")),
    *(Operator(f"torch.{name}({{x}})", S, FLOATS, (0, 4)) for name in ("sum", "mean")),
    *(Operator(f"torch.{name}({{x}}, {{dim}})", R, FLOATS, (1, 4)) for name in ("softmax", "log_softmax")),
    # Moving
    Operator("{x}.permute({perm})", M, ANY, (0, 8)),
    Operator("{x}.transpose({dim}, {dim})", M, ANY, (1, 8)),
    Operator("{x}.t()", M, ANY, (0, 2)),
    Operator("{x}[{part}]", M, ANY, (1, 8)),
    Operator("torch.select({x}, {place})", M, ANY, (1, 8)),
    Operator("torch.split({x}, {sections})", M, ANY, (1, 8)),
    Operator("torch.chunk({x}, {halves})", M, ANY, (1, 8)),
    Operator("{x}.expand({expand})", M, ANY, (0, 8)),
    Operator("{x}.repeat({repeats})", M, ANY),
    Operator("torch.flip({x}, {dims})", M, ANY, (1, 4)),
    Operator("{x}.unfold({dim}, {n}, {n})", M, FLOATS, (1, 5)),
    Operator("F.pixel_shuffle({x}, {n})", M, FLOATS, (3, 4)),
    Operator("torch.cat({others})", M, ANY, (1, 4)),
    Operator("torch.stack({alike})", M, ANY, (0, 4)),
    Operator("F.pad({x}, {pads})", M, ANY, (1, 4)),
    Operator("{x}.reshape({view})", M, ANY, (0, 8)),
    Operator("torch.squeeze({x}, {static})", M, ANY, (1, 8)),
    Operator("torch.unsqueeze({x}, {newdim})", M, ANY, (0, 7)),
    Operator("{x}.clone()", M, ANY, (0, 8)),
    Operator("{x}.contiguous()", M, ANY, (0, 8)),
    Operator("{x}.to({type})", J, ANY, (0, 8)),
    Operator("{x}.to({wider})", M, FLOATS, (0, 8)),
    Operator("index_select", M, ANY, (1, 4), index_select),
    Operator("index", M, NUMBERS, (1, 4), index),
    Operator("gather", M, ANY, (1, 4), gather),
    Operator("embedding", M, FLOATS, (2, 2), embedding),
    # New ones
    *(Operator(f"torch.{name}_like({{x}})", M, ANY, (0, 4)) for name in ("zeros", "ones")),
    Operator("torch.full_like({x}, {s})", M, NUMBERS, (0, 4)),
    *(Operator(f"{{x}} + torch.{name}({{shape}}, dtype={{x}}.dtype)", S, NUMBERS, (0, 4)) for name in ("zeros", "ones")),
    Operator("{x} * torch.full({shape}, {s}, dtype={x}.dtype)", S, NUMBERS, (0, 4)),
    Operator("torch.arange({n}, {size}, {n})", M, NUMBERS, (0, 4)),
    Operator("torch.arange({size}, dtype=torch.float32)", M, NUMBERS, (0, 4)),
    # Products, norms, pictures
    Operator("linear", S, FLOATS, (1, 4), linear),
    Operator("product", S, FLOATS, (2, 4), product),
    Operator("transposed product", S, FLOATS, (2, 4), transposed_product),
    Operator("addmm", S, FLOATS, (2, 2), addmm),
    *[Operator("convolution", S, FLOATS, (3, 4), convolution)] * 3,
    Operator("layer_norm", R, FLOATS, (1, 4), layer_norm),
    Operator("rms_norm", R, FLOATS, (1, 4), rms_norm),
    Operator("group_norm", R, FLOATS, (3, 4), group_norm),
    Operator("batch_norm", R, FLOATS, (4, 4), batch_norm),
    Operator("avg_pool2d", S, FLOATS, (4, 4), average),
    Operator("max_pool2d", J, FLOATS, (4, 4), maximum),
    Operator("interpolate", Kind.PLACES, FLOATS, (4, 4), resize),
    Operator("grid_sample", Kind.PLACES, FLOATS, (4, 4), grid),
    Operator("attention", R, FLOATS, (4, 4), attention),
]


def draw_case(seed: int) -> Case:
    """The module of this number: one operator, or a chain of up to six."""
    draw = Draw(seed)
    case = draw.case
    depth = 1 if draw.chance(0.5) else draw.random.randint(2, 6)
    while len(case.lines) < depth:
        _append(draw)
    read = {name for line in case.lines for name in NAME.findall(line.text)}
    made = [name for line in case.lines for name in line.results]
    case.outputs = _distinct(draw, [name for name in made if name not in read or draw.chance(0.1)])
    kept = [(value, places) for value, places in zip(case.inputs, case.dynamic) if value.name in read]
    case.inputs, case.dynamic = [value for value, _ in kept], [places for _, places in kept]
    case.constants = [value for value in case.constants if value.name in read]
    return case


def _distinct(draw: Draw, names: list[str]) -> list[str]:
    """Without results that are equal to an earlier one: where that is by a copy, which the exporter removes, the program
    passes two results and its payload lists one."""
    kept: list[Value] = []
    for value in (value for name in names for value in draw.values if value.name == name):
        if not any(value.dtype == v.dtype and all(map(torch.equal, value.samples, v.samples)) for v in kept):
            kept.append(value)
    return [value.name for value in kept]


def _append(draw: Draw) -> None:
    case = draw.case
    for _ in range(200):
        operator = draw.pick(OPERATORS)
        state = len(draw.values), len(case.inputs), len(case.constants)
        try:
            fitting = [value for value in draw.values[-2:] if operator.takes(value)]
            if not case.lines:
                rank = min(draw.random.randint(*operator.ranks), draw.random.randint(*operator.ranks))
                dims = draw.shape(rank)
                if operator.text == "convolution" and rank == 4:
                    dims[0] = 1
                fitting = [draw.new(dims, draw.pick(operator.types))]
            draw.add(operator.write(draw, draw.pick(fitting)), operator.kind)
            return
        except (Unfit, RuntimeError, IndexError, ValueError, ZeroDivisionError, TypeError):
            values, inputs, constants = state
            del draw.values[values:], case.inputs[inputs:], case.dynamic[inputs:], case.constants[constants:]
    raise RuntimeError(f"case {case.seed}: no operator fits {case}")
