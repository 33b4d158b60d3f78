"""How exact a value is, and by how much another correct implementation may differ from eager PyTorch."""

from collections.abc import Callable

import torch

#: Bits of the significand.
BITS = {torch.float32: 24, torch.float16: 11}
TRIALS = 6


def is_exact(value: torch.Tensor, bits: int) -> bool:
    """Whether all of `value` are integers or multiples of one power of two that fit `bits`, so that sums and products of
    such numbers do not depend on the order."""
    if not value.is_floating_point() or value.numel() == 0:
        return True
    finite = value[value.isfinite()].double()
    if finite.numel() == 0:
        return True
    scaled = finite * 64
    return bool((scaled == scaled.round()).all()) and float(scaled.abs().max()) < 2 ** (bits - 1)


def noise(half: bool) -> Callable[..., torch.Tensor]:
    """A function that changes numbers by rounding errors of their type, or of float16 where that is what the delegate
    computes in, of so many units in the last place."""

    def change(value: torch.Tensor, ulps: int = 1) -> torch.Tensor:
        if not value.is_floating_point() or value.numel() == 0:
            return value
        bits = BITS[torch.float16] if half else BITS[value.dtype]
        changed = value.double() * (1 + ulps * 2.0 ** (1 - bits) * (2 * torch.rand(value.shape, dtype=torch.float64) - 1))
        return (changed.half() if half else changed).to(value.dtype)

    return change


def difference(found: torch.Tensor, expected: torch.Tensor, trials: list[torch.Tensor], half: bool) -> str:
    """What differs by more than eight times what rounding errors in eager made of `expected` in `trials`; else ""."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {list(found.shape)}, expected {expected.dtype} {list(expected.shape)}"
    if not expected.is_floating_point():
        wrong = found != expected
    else:
        kind = torch.float16 if half else expected.dtype
        left, right = found.double(), expected.double()
        spread = torch.stack([(trial.double() - right).abs() for trial in trials]).amax(0)
        same = torch.stack([torch.isfinite(trial) == torch.isfinite(expected) for trial in trials]).all(0)
        room = 8 * spread + 2.0 ** (3 - BITS[kind]) * right.abs().clamp(min=1.0)
        close = (left - right).abs() <= room
        wrong = same & ~(close | (left == right) | (left.isnan() & right.isnan()))
    if not wrong.any():
        return ""
    if wrong.dim() == 0:
        return f"{found.item()}, expected {expected.item()}"
    place = tuple(wrong.nonzero()[0].tolist())
    return (f"{int(wrong.sum())} of {wrong.numel()} numbers of {list(wrong.shape)} differ, the first at {list(place)}: "
            f"{found[place].item()}, expected {expected[place].item()}")  # fmt: skip
