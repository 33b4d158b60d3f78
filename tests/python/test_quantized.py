"""Modules quantised as PyTorch's tools do it, exported through the partitioner and run on the delegate, against eager PyTorch."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

pytestmark = pytest.mark.usefixtures("delegate")
TOLERANCE = 1e-3


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


class Lowered:
    """A lowered and loaded module: the program's bytes, and the names of the operators that stay outside of delegates."""

    def __init__(self, path: Path, module: nn.Module, inputs: tuple[Any, ...], dynamic: Any = None) -> None:
        from etwgpu_export.lower import _keep_pattern_graphs
        from executorch.backends.webgpu.partitioner import WebGPUPartitioner
        from executorch.exir import to_edge_transform_and_lower
        from executorch.runtime import Runtime

        _keep_pattern_graphs()
        exported = export(module, inputs, dynamic_shapes=dynamic)
        options = {"require_dynamic_shapes": True} if dynamic else {}
        lowered = to_edge_transform_and_lower(exported, partitioner=[WebGPUPartitioner(options)]).to_executorch()
        self.outside = [operator.name for operator in lowered.executorch_program.execution_plan[0].operators]
        self.bytes = lowered.buffer
        path.write_bytes(self.bytes)
        self._program = Runtime.get().load_program(path)
        self._method = self._program.load_method("forward")

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return self._method.execute(inputs)

    def assert_delegated(self, *names: str) -> None:
        assert not self.outside
        for name in names:
            assert name.encode() in self.bytes, name


def assert_equal_eager(lowered: Lowered, module: nn.Module, *inputs: torch.Tensor) -> None:
    expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for right, left in zip(lowered(*inputs), expected, strict=True):
        torch.testing.assert_close(right, left, atol=TOLERANCE, rtol=TOLERANCE)


def static(module: nn.Module, *inputs: torch.Tensor, requantized: bool = True) -> nn.Module:
    """8-bit weights of channels and 8-bit activations, whose ranges come from `inputs`."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=False)
    if not requantized:
        config = dataclasses.replace(config, output_activation=None)
    return converted(module, XNNPACKQuantizer().set_global(config), inputs)


def channels(module: nn.Module, bits: int, *inputs: torch.Tensor) -> nn.Module:
    """Weights of so many bits, with a scale for each channel."""
    from executorch.backends.vulkan.quantizer.vulkan_quantizer import VulkanQuantizer, get_symmetric_quantization_config

    config = get_symmetric_quantization_config(is_dynamic=False, weight_bits=bits)
    return converted(module, VulkanQuantizer().set_global(config), inputs)


def converted(module: nn.Module, quantizer: Any, inputs: tuple[torch.Tensor, ...]) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    prepared = prepare_pt2e(export(module.eval(), inputs).module(), quantizer)
    prepared(*inputs)
    return convert_pt2e(prepared)


@pytest.mark.parametrize("rows", [1, 5])
def test_layers_of_bytes(tmp_path: Path, rows: int) -> None:
    x = torch.randn(rows, 64)
    layers = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 20, bias=False), nn.Linear(20, 8))
    module = static(nn.Sequential(layers, nn.Identity()), x)
    lowered = Lowered(tmp_path / "layers.pte", module, (x,))
    lowered.assert_delegated("q8ta_linear_gemv" if rows == 1 else "q8ta_linear", "quantize_per_tensor")
    assert_equal_eager(lowered, module, x)
    assert_equal_eager(lowered, module, 3 * torch.randn(rows, 64))


@pytest.mark.parametrize("rows, columns", [(1, 16), (3, 8)])
def test_a_layer_of_bytes_gives_numbers(tmp_path: Path, rows: int, columns: int) -> None:
    x = torch.randn(rows, 48)
    module = static(nn.Linear(48, columns), x, requantized=False)
    lowered = Lowered(tmp_path / "layer.pte", module, (x,))
    lowered.assert_delegated("linear_q8ta_q8csw")
    assert_equal_eager(lowered, module, x)


class Picture(nn.Module):
    """Convolutions of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, stride=2)
        self.pointwise = nn.Conv2d(8, 6, 1)
        self.transposed = nn.ConvTranspose2d(6, 5, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        return self.transposed(torch.relu(self.pointwise(self.depthwise(x))))


def test_convolutions_of_bytes(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 7, 9)
    module = static(Picture(), x)
    lowered = Lowered(tmp_path / "picture.pte", module, (x,))
    lowered.assert_delegated("q8ta_conv2d.default", "q8ta_conv2d_dw", "q8ta_conv2d_pw", "q8ta_conv2d_transposed")
    assert_equal_eager(lowered, module, x)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x) + x)


def test_sums_of_bytes(tmp_path: Path) -> None:
    x = torch.randn(1, 4, 5, 3)
    module = static(Residual(), x)
    lowered = Lowered(tmp_path / "residual.pte", module, (x,))
    lowered.assert_delegated("q8ta_add")
    assert_equal_eager(lowered, module, x)


@pytest.mark.parametrize("bits, name", [(4, "linear_qcs4w"), (8, "_weight_int8pack_mm")])
def test_weights_with_a_scale_for_each_channel(tmp_path: Path, bits: int, name: str) -> None:
    x = torch.randn(3, 40)
    module = channels(nn.Sequential(nn.Linear(40, 14), nn.ReLU(), nn.Linear(14, 7, bias=False)), bits, x)
    lowered = Lowered(tmp_path / "channels.pte", module, (x,))
    lowered.assert_delegated(name)
    assert_equal_eager(lowered, module, x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_dynamic_bytes_times_groups_of_4_bits(tmp_path: Path, dynamic: bool) -> None:
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.utils import unwrap_tensor_subclass

    module = nn.Sequential(nn.Linear(64, 32, bias=False), nn.SiLU(), nn.Linear(32, 12))
    granularity = PerGroup(32)
    quantize_(module, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=granularity))
    unwrap_tensor_subclass(module)
    inputs = (torch.randn(7, 64),)
    lowered = Lowered(tmp_path / "8da4w.pte", module, inputs, ({0: Dim("rows", min=1, max=20)},) if dynamic else None)
    lowered.assert_delegated("linear_dq8ca_q4gsw", "choose_qparams_affine")
    for rows in (7, 1, 20, 6) if dynamic else (7,):
        x = torch.randn(rows, 64)
        x[-1] = 0.0
        assert_equal_eager(lowered, module, x)


def test_groups_of_4_bits(tmp_path: Path) -> None:
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.quant_api import IntxWeightOnlyConfig, quantize_
    from torchao.utils import unwrap_tensor_subclass

    module = nn.Sequential(nn.Linear(96, 24), nn.Linear(24, 8))
    quantize_(module[0], IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
    quantize_(module[1], IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(8)))
    unwrap_tensor_subclass(module)
    x = torch.randn(3, 96)
    lowered = Lowered(tmp_path / "4w.pte", module, (x,))
    lowered.assert_delegated("linear_q4gsw")
    assert_equal_eager(lowered, module, x)


class Parameters(nn.Module):
    """Scales and zero points that the device chooses or is given, and what becomes of numbers and bytes with them."""

    def forward(
        self, x: torch.Tensor, q: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ops = torch.ops.quantized_decomposed
        scale, zero = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
        rows = ops.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
        numbers = ops.dequantize_per_token(q, scale, zero, -128, 127, torch.int8, torch.float32)
        columns = ops.quantize_per_channel(x, scales, zeros, 1, -128, 127, torch.int8)
        back = ops.dequantize_per_channel(q, scales, zeros, 1, -128, 127, torch.int8)
        scale, zero = ops.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
        whole = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        apart = ops.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8)
        return rows, numbers, columns, back, whole, apart


def test_parameters_that_the_device_chooses(tmp_path: Path) -> None:
    x, scales = torch.randn(5, 11), torch.rand(11) * 0.05 + 0.01
    q = torch.randint(-128, 128, (5, 11), dtype=torch.int8)
    zeros = torch.randint(-20, 20, (11,), dtype=torch.int32)
    module = Parameters()
    lowered = Lowered(tmp_path / "parameters.pte", module, (x, q, scales, zeros))
    lowered.assert_delegated("choose_qparams_per_token_asymmetric", "quantize_per_token", "quantize_per_channel")
    assert_equal_eager(lowered, module, x, q, scales, zeros)


class Gradients(nn.Module):
    """A loss and the gradient of a layer's weight."""

    def forward(self, x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        loss, gradient = torch.ops.et_vk.fused_ce(nn.functional.linear(x, w), labels, 5.0)
        return loss, torch.ops.et_vk.linear_dW(gradient, x)


def test_gradients(tmp_path: Path) -> None:
    from executorch.backends.vulkan import custom_ops_lib  # noqa: F401

    labels = torch.tensor([3, 0, -100, 6, 1, 1], dtype=torch.int32)
    inputs = torch.randn(6, 23), labels, torch.randn(7, 23)
    lowered = Lowered(tmp_path / "gradients.pte", Gradients(), inputs)
    lowered.assert_delegated("fused_ce", "linear_dW")
    assert_equal_eager(lowered, Gradients(), *inputs)
