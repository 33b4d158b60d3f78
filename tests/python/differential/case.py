"""A random module, as the lines of its `forward`."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import nn

from differential import numbers

SCOPE = {"torch": torch, "nn": nn, "F": nn.functional}
NAME = re.compile(r"\b[vcx]\d+\b")
EXTENTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 33]
FLOATS = (torch.float32, torch.float16)
INTS = (torch.int32, torch.int64)


class Unfit(Exception):
    """This operator cannot be drawn for this operand."""


class Kind(Enum):
    """What an operator does to rounding errors."""

    MOVES = "adds none"
    SUMS = "adds none while all numbers are exact"
    ROUNDS = "adds some"
    PLACES = "adds more: also the places that it reads from are rounded"
    JUMPS = "adds none, but may turn a small one into a large one: takes only exact numbers"


@dataclass(frozen=True)
class Value:
    """A tensor of a module, by its samples: one for each size of the dynamic dimension."""

    name: str
    samples: tuple[torch.Tensor, ...]
    exact: bool

    @property
    def dtype(self) -> torch.dtype:
        return self.samples[0].dtype

    @property
    def shape(self) -> torch.Size:
        """The largest."""
        return self.samples[0].shape


@dataclass(frozen=True)
class Line:
    results: tuple[str, ...]
    text: str
    kind: Kind

    def __str__(self) -> str:
        return f"{', '.join(self.results)} = {self.text}"


@dataclass
class Case:
    """`sizes` are those of the dynamic dimension, the bound first; one size: a static module. With `half`, the delegate is
    told to compute in float16."""

    seed: int
    sizes: Sequence[int]
    half: bool = False
    inputs: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    #: For each input, the places of the dynamic dimension.
    dynamic: list[tuple[int, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        def row(value: Value) -> str:
            shape = [str(n) for n in value.shape]
            for place in dict(zip([v.name for v in self.inputs], self.dynamic)).get(value.name, ()):
                shape[place] = "N"
            return f"{value.name}: {str(value.dtype).removeprefix('torch.')}[{', '.join(shape)}]"

        head = ", ".join(map(row, self.inputs)) + "".join(f"; constant {row(value)}" for value in self.constants)
        options = (f"; N in {list(self.sizes)}" if len(self.sizes) > 1 else "") + ("; force_fp16" if self.half else "")
        body = "".join(f"\n    {line}" for line in self.lines)
        return f"case {self.seed}: {head}{options}{body}\n    return {', '.join(self.outputs)}"

    def module(self) -> nn.Module:
        return Module(self)

    def arguments(self, size: int) -> tuple[torch.Tensor, ...]:
        return tuple(value.samples[size] for value in self.inputs)

    def run(self, size: int, change: Any = None) -> list[torch.Tensor]:
        """The results in eager PyTorch; with a `change`, of each number that may be rounded."""
        scope = {value.name: value.samples[size] for value in self.constants + self.inputs}
        if change:
            inexact = {value.name for value in self.constants + self.inputs if not value.exact}
            scope |= {name: change(scope[name]) for name in inexact}
        for line in self.lines:
            rounds = line.kind in (Kind.ROUNDS, Kind.PLACES) or (line.kind is Kind.SUMS and not self._exact(line, scope))
            if not change or not rounds:
                scope |= zip(line.results, evaluate(line.text, scope))
                continue
            ulps = 32 if line.kind is Kind.PLACES else 1
            around = {name: change(scope[name], ulps) for name in NAME.findall(line.text)}
            scope |= zip(line.results, map(change, evaluate(line.text, scope | around)))
        return [scope[name] for name in self.outputs]

    def bits(self, dtype: torch.dtype) -> int:
        return numbers.BITS[torch.float16 if self.half else dtype] if dtype.is_floating_point else 32

    def _exact(self, line: Line, scope: dict[str, torch.Tensor]) -> bool:
        tensors = [scope[name] for name in NAME.findall(line.text)] + list(evaluate(line.text, scope))
        return all(numbers.is_exact(tensor, self.bits(tensor.dtype)) for tensor in tensors)


def evaluate(text: str, scope: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    result = eval(text, SCOPE | scope)  # noqa: S307
    return tuple(result) if isinstance(result, tuple | list) else (result,)


class Module(nn.Module):
    """The case as a module whose source has its lines, as a person would write them."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        for value in case.constants:
            self.register_buffer(value.name, value.samples[0])
        names = ", ".join(value.name for value in case.inputs)
        body = [f"{value.name} = self.{value.name}" for value in case.constants]
        body += [f"{', '.join(line.results)}{',' if len(line.results) > 1 else ''} = {line.text}" for line in case.lines]
        source = "\n    ".join([f"def forward(self, {names}):", *body, f"return ({', '.join(case.outputs)},)"])
        exec(source, SCOPE, scope := {})  # noqa: S102
        self._forward = scope["forward"]

    def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._forward(self, *arguments)


class Draw:
    """What operators are drawn with: random numbers, and the case so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        bound = self.random.choice([2, 3, 4, 5, 8, 9, 13, 17])
        below = sorted({1, self.random.randint(1, bound - 1)}, reverse=True)
        self.case = Case(seed, [bound, *below] if self.chance(0.4) else [0], self.chance(0.15))
        self.values: list[Value] = []
        self.count = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, choices: Sequence[Any]) -> Any:
        if not choices:
            raise Unfit
        return self.random.choice(choices)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # Shapes

    def shape(self, rank: int, room: int = 3000) -> list[int | None]:
        """Extents of a new tensor; None is the dynamic one."""
        dims: list[int | None] = []
        for _ in range(rank):
            fitting = [n for n in EXTENTS if n <= max(1, room)]
            dims.append(self.pick(fitting[: 6 if rank > 4 else None]))
            room //= dims[-1]
        self.random.shuffle(dims)
        if rank and self.chance(0.03):
            dims[self.random.randrange(rank)] = 0
        if rank and len(self.case.sizes) > 1:
            dims[self.random.randrange(rank)] = None
        return dims

    def extents(self, value: Value) -> list[int | None]:
        """The shape of `value` in the terms of `shape`."""
        dims: list[int | None] = []
        for place, n in enumerate(value.shape):
            all_sizes = [sample.shape[place] for sample in value.samples]
            if len(set(all_sizes)) == 1:
                dims.append(n)
            elif all_sizes == list(self.case.sizes):
                dims.append(None)
            else:
                raise Unfit
        return dims

    # Tensors

    def data(self, dims: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        g = self.generator
        if dtype == torch.bool:
            return torch.rand(dims, generator=g) < 0.5
        if not dtype.is_floating_point:
            return torch.randint(0 if dtype == torch.uint8 else -9, 10, dims, generator=g).to(dtype)
        way = self.way
        if way == "normal":
            return torch.randn(dims, generator=g).to(dtype)
        value = torch.randint(-24, 25, dims, generator=g) / 8
        if way == "positive":
            value = value.abs() + 0.125
        if way == "special":
            special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0])
            chosen = special[torch.randint(0, 5, dims, generator=g)]
            value = torch.where(torch.rand(dims, generator=g) < 0.2, chosen, value)
        return value.to(dtype)

    def new(self, dims: Sequence[int | None], dtype: torch.dtype, constant: bool = False, tensor: Any = None) -> Value:
        """A new input, or a new constant, which no dynamic dimension can have."""
        if constant and None in dims:
            raise Unfit
        self.way = self.pick(["grid", "grid", "grid", "normal", "normal", "positive"] + ["special"] * self.chance(0.3))
        if constant and self.way == "special":
            self.way = "grid"  # eager folds infinite statistics and weights of norms in another order
        shapes = [[size if n is None else n for n in dims] for size in self.case.sizes]
        if constant:
            one = self.data(shapes[0], dtype) if tensor is None else tensor
            samples = tuple(one for _ in shapes)
        else:
            samples = tuple(self.data(shape, dtype) if tensor is None else tensor(shape) for shape in shapes)
        place = self.case.constants if constant else self.case.inputs
        exact = all(numbers.is_exact(sample, self.case.bits(dtype)) for sample in samples)
        value = Value(self.name("c" if constant else "x"), samples, exact)
        place.append(value)
        if not constant:
            self.case.dynamic.append(tuple(i for i, n in enumerate(dims) if n is None))
            self.values.append(value)
        return value

    def operand(self, dims: Sequence[int | None], dtype: torch.dtype) -> Value:
        """A value of this shape and type: one that is there, a new input or a constant."""
        there = [v for v in self.values if v.dtype == dtype and self.has(v, dims)]
        if there and self.chance(0.4):
            return self.pick(there)
        return self.new(dims, dtype, constant=None not in dims and self.chance(0.5))

    def has(self, value: Value, dims: Sequence[int | None]) -> bool:
        try:
            return self.extents(value) == list(dims)
        except Unfit:
            return False

    def broadcast(self, value: Value) -> list[int | None]:
        """A shape that broadcasts with that of `value`, and mostly to it."""
        dims = self.extents(value)
        way = self.random.random()
        if way < 0.4:
            return dims
        if way < 0.6:
            dims = dims[self.random.randint(0, len(dims)) :]
        dims = [1 if self.chance(0.4) else n for n in dims]
        if way > 0.9 and len(dims) < 4:
            dims = [self.pick([1, 2, 3]), *dims]
        return dims

    # Parts of an operator's text

    def dim(self, value: Value, beyond: int = 0) -> int:
        rank = len(value.shape) + beyond
        if rank == 0:
            raise Unfit
        return self.random.randrange(-rank, rank)

    def dims(self, value: Value, least: int = 1) -> list[int]:
        rank = len(value.shape)
        if rank < least:
            raise Unfit
        places = self.random.sample(range(rank), self.random.randint(least, rank))
        return [place - rank * self.chance(0.4) for place in places]

    def scalar(self, dtype: torch.dtype) -> int | float:
        if dtype.is_floating_point and self.chance(0.6):
            return self.random.randint(-24, 24) / 8
        return self.random.randint(-4, 4)

    def add(self, text: str, kind: Kind) -> tuple[Value, ...]:
        """Appends a line with this text; its results."""
        names = NAME.findall(text)
        scopes = [{v.name: v.samples[i] for v in self.values + self.case.constants} for i in range(len(self.case.sizes))]
        exact = all(v.exact for v in self.values + self.case.constants if v.name in names)
        if kind is Kind.JUMPS and not exact:
            raise Unfit
        results = [evaluate(text, scope) for scope in scopes]
        values = []
        for samples in zip(*results, strict=True):
            if any(s.numel() > 40_000 or s.dim() > 8 for s in samples) or len({s.dtype for s in samples}) > 1:
                raise Unfit
            bits = self.case.bits(samples[0].dtype)
            if self.case.half and any((s.isfinite() & (s.abs() > 3e4)).any() for s in samples if s.is_floating_point()):
                raise Unfit
            if any((s.abs() > 2**30).any() for s in samples if not s.is_floating_point() and s.dtype != torch.bool):
                raise Unfit
            fits = all(numbers.is_exact(s, bits) for s in samples)
            values.append(Value(self.name("v"), samples, exact and kind not in (Kind.ROUNDS, Kind.PLACES) and fits))
        if not values:
            raise Unfit
        self.case.lines.append(Line(tuple(v.name for v in values), text, kind))
        self.values += values
        return tuple(values)
