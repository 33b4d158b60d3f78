"""Networks for pictures, exported through the partitioner and run on the delegate, against eager PyTorch."""

from pathlib import Path

import pytest
import torch
from conftest import Lowered
from etwgpu_export.nets.zoo import UNetBlock, unet
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

pytestmark = pytest.mark.usefixtures("delegate")
TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2}


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def randomised(module: nn.Module) -> nn.Module:
    """The module for inference, its norms with factors and statistics as training leaves them."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d | nn.GroupNorm) and part.affine:
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -0.5, 0.5)
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean, -0.5, 0.5)
            nn.init.uniform_(part.running_var, 0.5, 2.0)
    return module.eval().requires_grad_(False)


def assert_equal_eager(lowered: Lowered, module: nn.Module, inputs: tuple[torch.Tensor, ...], tolerance: float) -> None:
    expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, right in zip(lowered(inputs), expected, strict=True):
        torch.testing.assert_close(found, right, atol=tolerance, rtol=tolerance)


class InvertedResidual(nn.Module):
    """MobileNet V2: wide in the middle, each channel convolved alone."""

    def __init__(self, channels: int, made: int, stride: int) -> None:
        super().__init__()
        wide = 6 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, made, 1, bias=False), nn.BatchNorm2d(made),
        )  # fmt: skip
        self.adds = stride == 1 and channels == made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x)
        return x + y if self.adds else y


class BasicBlock(nn.Module):
    """ResNet: two convolutions and a way around them."""

    def __init__(self, channels: int, made: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, made, 3, stride, 1, bias=False), nn.BatchNorm2d(made), nn.ReLU(),
            nn.Conv2d(made, made, 3, 1, 1, bias=False), nn.BatchNorm2d(made),
        )  # fmt: skip
        around = nn.Sequential(nn.Conv2d(channels, made, 1, stride, bias=False), nn.BatchNorm2d(made))
        self.around = nn.Identity() if stride == 1 and channels == made else around

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.layers(x) + self.around(x))


class MobileNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
            InvertedResidual(8, 8, 1), InvertedResidual(8, 12, 2), InvertedResidual(12, 12, 1),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 10),
        )  # fmt: skip


class ResNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            BasicBlock(8, 8, 1), BasicBlock(8, 16, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
        )  # fmt: skip


NETWORKS = {
    "mobilenet": (MobileNet, (1, 3, 33, 35)),
    "resnet": (ResNet, (1, 3, 64, 48)),
    "unet": (lambda: unet(8, 1), (1, 3, 20, 28)),
}


@pytest.mark.parametrize("force_fp16", [False, True], ids=["f32", "f16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(tmp_path: Path, name: str, force_fp16: bool) -> None:
    make, shape = NETWORKS[name]
    module, inputs = randomised(make()), (torch.randn(shape),)
    lowered = Lowered(tmp_path / "network.pte", module, inputs, force_fp16=force_fp16)
    assert lowered.outside == set()
    assert_equal_eager(lowered, module, inputs, TOLERANCE[torch.float16 if force_fp16 else torch.float32])


def check_sizes(path: Path, module: nn.Module, step: int, sizes: list[tuple[int, int]], **options: bool) -> None:
    """Exports for pictures of up to the first of these sizes, each a multiple of `step`, and runs all of them."""
    rows, columns = (step * Dim(name, min=8 // step, max=bound // step) for name, bound in zip(("rows", "columns"), sizes[0]))
    inputs = (torch.randn(1, 3, *sizes[0]),)
    lowered = Lowered(path, module, inputs, ({2: rows, 3: columns},), **options)
    assert lowered.outside == set()
    for size in sizes:
        assert_equal_eager(lowered, module, (torch.randn(1, 3, *size),), TOLERANCE[torch.float32])


def test_mobilenet_of_any_size(tmp_path: Path) -> None:
    first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6())
    module = randomised(nn.Sequential(first, InvertedResidual(8, 8, 1), nn.MaxPool2d(2, 1), nn.AvgPool2d(2, 1)))
    sizes = [(80, 70), (17, 64), (8, 9), (79, 8), (80, 70)]
    check_sizes(tmp_path / "network.pte", module, 1, sizes, require_dynamic_shapes=True)


def test_unet_of_any_size(tmp_path: Path) -> None:
    module = randomised(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), UNetBlock(8), nn.PixelShuffle(2)))
    # The partitioner would keep norms and interpolations of changing sizes off the delegate if told that sizes change.
    check_sizes(tmp_path / "network.pte", module, 2, [(40, 32), (8, 32), (10, 8), (40, 32)])


class Pools(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.avg_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, (3, 2), (2, 3), 1, divisor_override=3),
            F.max_pool2d(x, 2),
            *F.max_pool2d(x, 3, 2, 1, dilation=2, ceil_mode=True, return_indices=True),
        )


class Sizes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from executorch.backends.vulkan import custom_ops_lib  # noqa: F401

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.interpolate(x, size=(9, 20), mode="nearest"),
            F.interpolate(x, scale_factor=1.6, mode="nearest"),
            F.interpolate(x, size=(9, 20), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=(0.5, 1.7), mode="bilinear"),
            F.pixel_shuffle(x, 2),
            torch.ops.et_vk.grid_priors(x, 8, 0.5),
        )


class Grid(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return F.grid_sample(x, grid, "bilinear", "border", align_corners=True)


class Norms(nn.Module):
    """Norms that no convolution takes in."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = nn.BatchNorm2d(6)
        self.others = nn.ModuleList([nn.GroupNorm(3, 6), nn.GroupNorm(2, 6, affine=False), nn.LayerNorm([5, 7])])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.relu(self.batch(x))
        return y, *(norm(y) for norm in self.others)


class Lines(nn.Module):
    """Convolutions of one dimension, with norms."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(4, 6, 3, padding=1), nn.GroupNorm(3, 6), nn.GELU(),
            nn.Conv1d(6, 6, 5, 2, groups=6), nn.Conv1d(6, 5, 1), nn.LayerNorm(7),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


OPERATORS = {
    "pools": (Pools, ((1, 4, 11, 13),)),
    "sizes": (Sizes, ((1, 8, 5, 7),)),
    "norms": (Norms, ((2, 6, 5, 7),)),
    "grid": (Grid, ((2, 3, 6, 5), (2, 4, 7, 2))),
    "lines": (Lines, ((2, 4, 17),)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(tmp_path: Path, name: str) -> None:
    make, shapes = OPERATORS[name]
    module, inputs = randomised(make()), tuple(torch.randn(shape) for shape in shapes)
    lowered = Lowered(tmp_path / "operators.pte", module, inputs)
    assert lowered.outside == set()
    assert_equal_eager(lowered, module, inputs, TOLERANCE[torch.float32])
