"""Symmetric 4-bit weights with signed scales.

A weight is q * scale, q in -8..7. The sign of a scale is that which maps the group's largest weight near -8, so that all 16
values are used; what is minimised is the error of the layer's output, estimated by the mean square of each of its inputs.
"""

from collections.abc import Sequence

import torch

_LARGEST_MAPS_TO = (-8.4, -7.9, -7.5, -7.1, -6.7)
_ROWS_AT_ONCE = 4096


def quantise(weight: torch.Tensor, group: int, importance: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """`weight` [N, K] -> q int8 [N, K] and f32 scales [N, K / group]; `importance` [K] weighs squared errors."""
    if importance is None:
        importance = torch.ones(weight.shape[1])
    columns = importance.reshape(1, -1, group)
    parts = [_fit(rows.reshape(len(rows), -1, group), columns) for rows in weight.split(_ROWS_AT_ONCE)]
    q = torch.cat([part[0] for part in parts]).reshape(weight.shape)
    return q.to(torch.int8), torch.cat([part[1] for part in parts]).squeeze(-1)


def _fit(groups: torch.Tensor, importance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    largest = torch.where(largest == 0, torch.ones_like(largest), largest)
    best_q, best_scale = torch.zeros_like(groups), torch.zeros_like(largest)
    best_error = torch.full_like(largest, torch.inf)
    for target in _LARGEST_MAPS_TO:
        q = (groups * (target / largest)).round_().clamp_(-8, 7)
        norm = (q * q * importance).sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        scale = (q * groups * importance).sum(-1, keepdim=True) / norm
        error = ((q * scale - groups).square_() * importance).sum(-1, keepdim=True)
        better = error < best_error
        best_error = torch.where(better, error, best_error)
        best_q = torch.where(better, q, best_q)
        best_scale = torch.where(better, scale, best_scale)
    return best_q, best_scale


@torch.inference_mode()
def input_importance(model: torch.nn.Module, tokens: Sequence[int], bound: int) -> dict[str, torch.Tensor]:
    """Mean square of each input of each linear layer while `model` reads `tokens`, at most `bound` of them at a time."""
    sums: dict[str, torch.Tensor] = {}

    def observe(name: str, inputs: torch.Tensor) -> None:
        squares = inputs.reshape(-1, inputs.shape[-1]).square().sum(0)
        sums[name] = sums.get(name, torch.zeros_like(squares)) + squares

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, inputs, name=name: observe(name, inputs[0]))
    for start in range(0, len(tokens), bound):
        model(torch.tensor([tokens[start : start + bound]]), {"input_pos": torch.tensor([start])})
    return {name: total / len(tokens) for name, total in sums.items()}


@torch.no_grad()
def requantise(
    model: torch.nn.Module, weights: dict[str, torch.Tensor], importance: dict[str, torch.Tensor], group: int
) -> None:
    """Replaces the values of a model that ExecuTorch has quantised to 4 bits; `weights` are the original ones by name.

    A weight that two modules share stays shared: it gets the values that the first of them asks for.
    """
    fitted: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for name, module in model.named_modules():
        original = weights.get(f"{name}.weight")
        if original is None or original.ndim != 2:
            continue
        if id(original) not in fitted:
            fitted[id(original)] = quantise(original, group, importance.get(name))
        q, scales = fitted[id(original)]
        if isinstance(module, torch.nn.Linear):
            module.weight.qdata.copy_(q)
            module.weight.scale.copy_(scales)
        else:
            module.weight.copy_(_packed_embedding(q))
            module.scales.copy_(scales)


def _packed_embedding(q: torch.Tensor) -> torch.Tensor:
    codes = (q + 8).to(torch.uint8)
    return codes[:, 0::2] * 16 + codes[:, 1::2]
