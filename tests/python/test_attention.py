"""Attention, exported through the partitioner and run on the delegate, against eager PyTorch."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import Lowered
from torch.export import Dim
from torch.nn.functional import scaled_dot_product_attention

pytestmark = pytest.mark.usefixtures("delegate")
TOLERANCE = 1e-4
Named = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


class Attentions(torch.nn.Module):
    """Several attentions in one program, for every export takes seconds: a dictionary of named results."""

    def __init__(self, forward: Callable[..., Named], caches: int = 0, shape: tuple[int, ...] = ()) -> None:
        super().__init__()
        self._forward = forward
        for index in range(caches):
            self.register_buffer(f"k{index}", torch.zeros(shape))
            self.register_buffer(f"v{index}", torch.zeros(shape))

    def forward(self, *inputs: torch.Tensor) -> Named:
        caches = list(self.buffers())
        return self._forward(*inputs, caches) if caches else self._forward(*inputs)


def assert_equal_eager(lowered: Lowered, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    expected = module(*inputs)
    for (name, left), right in zip(expected.items(), lowered(inputs), strict=True):
        tell = functools.partial("{}: {}".format, name)
        torch.testing.assert_close(right, left, atol=TOLERANCE, rtol=TOLERANCE, equal_nan=True, msg=tell)


def qkv(seq: int, keys: int, d: int = 20) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(2, 3, rows, d) for rows in (seq, keys, keys))


def test_attention_of_pytorch(tmp_path: Path) -> None:
    def forward(q, k, v, mask, seen) -> Named:  # noqa: ANN001
        return {
            "plain": scaled_dot_product_attention(q, k, v),
            "added mask": scaled_dot_product_attention(q, k, v, attn_mask=mask),
            "mask of bools": scaled_dot_product_attention(q, k, v, attn_mask=seen),
            "causal": scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        }

    mask = torch.randn(9, 13)
    mask[2], mask[3, 5:] = -torch.inf, -torch.inf
    inputs = (*qkv(9, 13), mask, mask > 0)
    module = Attentions(forward)
    assert_equal_eager(Lowered(tmp_path / "attention.pte", module, inputs), module, inputs)


def test_fused_attention_of_any_length(tmp_path: Path) -> None:
    from executorch.backends.vulkan import custom_ops_lib  # noqa: F401

    sdpa = torch.ops.et_vk.sdpa.default

    def forward(q, k, v, mask) -> Named:  # noqa: ANN001
        return {
            "plain": sdpa(q, k, v),
            "mask of all": sdpa(q, k, v, mask, 0.3),
            "one head of keys": sdpa(q, k[:, :1], v[:, :1], mask[:1]),
            "odd heads": sdpa(q[..., :7], k[..., :7], v[..., :11], mask),
        }

    def inputs(seq: int, keys: int) -> tuple[torch.Tensor, ...]:
        mask = torch.randn(3, seq, keys)
        # The first query sees nothing, another one only the last key.
        mask[:, 0], mask[:, seq // 2, :-1] = -torch.inf, torch.finfo(torch.float32).min
        return (*qkv(seq, keys), mask)

    seq, keys = Dim("seq", min=1, max=70), Dim("keys", min=2, max=200)
    module = Attentions(forward)
    shapes = (({2: seq}, {2: keys}, {2: keys}, {1: seq, 2: keys}),)
    lowered = Lowered(tmp_path / "attention.pte", module, inputs(65, 150), shapes, require_dynamic_shapes=True)
    assert not any("sdpa" in name for name in lowered.outside)
    for lengths in [(70, 200), (17, 64), (1, 129), (2, 2), (70, 200)]:
        assert_equal_eager(lowered, module, inputs(*lengths))


@pytest.mark.parametrize("batch", [1, 2])
def test_attention_over_caches(tmp_path: Path, batch: int) -> None:
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401

    capacity, update, sdpa = 48, torch.ops.llama.update_cache, torch.ops.llama.custom_sdpa

    def forward(q, k, v, mask, pos, caches) -> Named:  # noqa: ANN001
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + q.size(1) <= capacity)
        for k_cache, v_cache in zip(caches[::2], caches[1::2]):
            update(k, k_cache, start)
            update(v, v_cache, start)
        # The partitioner needs all arguments, but the exporter drops defaults at the end: a scale keeps them.
        return {
            "causal": sdpa(q, caches[0], caches[1], start, None, 0.0, True, 0.3),
            "mask": sdpa(q, caches[2], caches[3], start, mask, 0.0, False, 0.3),
            "all that is written": sdpa(q, caches[4], caches[5], start, None, 0.0, False, 0.3),
        }

    def inputs(seq: int, pos: int) -> tuple[torch.Tensor, ...]:
        q, k, v = (torch.randn(batch, seq, heads, 16) for heads in (4, 2, 2))
        mask = torch.where(torch.rand(seq, capacity) < 0.3, -torch.inf, torch.randn(seq, capacity))
        return q, k, v, mask, torch.tensor([pos])

    module, eager = (Attentions(forward, 3, (batch, capacity, 2, 16)) for _ in range(2))
    lowered = Lowered(tmp_path / "attention.pte", module, inputs(5, 3))
    assert not any("sdpa" in name or "update_cache" in name for name in lowered.outside)
    for pos in (0, 5, 10, 43, 2):
        assert_equal_eager(lowered, eager, inputs(5, pos))
