"""The networks, each as published and cut down to a depth that a CPU runs in a moment, and random weights for them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import ResNet, VisionTransformer, efficientnet, mobilenetv3, resnet
from torchvision.models import MobileNetV2 as MobileNet2

from etwgpu_export.nets.transformers import Bert, WhisperDecoder, WhisperEncoder

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Net:
    """A network, its inputs, the delegate calls in its program, and the operators between them, which run on the CPU."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    delegates: int = 1
    outside: frozenset[str] = frozenset()

    def build(self) -> tuple[nn.Module, Inputs]:
        """The same module for inference, and the same inputs, each time."""
        inputs = self.build_inputs()
        return randomise(self.make(), inputs), inputs

    def build_inputs(self) -> Inputs:
        torch.manual_seed(0)
        return self.inputs()


class UNetBlock(nn.Module):
    """Down by a convolution, up by interpolation and by a transposed convolution, both joined with what was there."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.inner = nn.Conv2d(channels, channels, 3, padding=1)
        self.down = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.bottom = nn.Sequential(nn.GroupNorm(8, 2 * channels), nn.SiLU(), nn.Conv2d(2 * channels, channels, 1))
        self.up = nn.ConvTranspose2d(channels, channels, 3, 2, 1, output_padding=1)
        self.merge = nn.Conv2d(4 * channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.inner(F.silu(self.norm(x)))
        low = self.bottom(self.down(kept))
        sharp = F.interpolate(low, scale_factor=2.0, mode="nearest")
        smooth = F.interpolate(low, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.merge(torch.cat([kept, sharp, smooth, self.up(low)], 1))


def unet(channels: int, blocks: int) -> nn.Module:
    first, last = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 1)
    return nn.Sequential(first, *(UNetBlock(channels) for _ in range(blocks)), last)


PERIOD = 4093
FACTORS = torch.tensor([0.5, 0.75, 1.0, 1.5])


def randomise(module: nn.Module, inputs: Inputs) -> nn.Module:
    """Gives `module` weights that repeat with a prime period, so that a program of any size packs well, and no two layers
    alike; its norms get any offsets, and factors and variances of a few values: a convolution that takes a norm in then
    still repeats."""
    period = torch.randn(PERIOD).clamp(-3, 3)
    norms = nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm
    start = 0
    with torch.no_grad():
        for part in module.modules():
            for name, parameter in part.named_parameters(recurse=False):
                if isinstance(part, norms) and name == "weight":
                    parameter.copy_(FACTORS[torch.arange(parameter.numel()) % len(FACTORS)].reshape(parameter.shape))
                    continue
                values = period.roll(start).repeat(-(-parameter.numel() // PERIOD))[: parameter.numel()]
                parameter.copy_((values * _deviation(part, parameter)).reshape(parameter.shape))
                start += 89
            if isinstance(part, nn.BatchNorm2d):
                part.register_forward_pre_hook(_measure)
        module.eval().requires_grad_(False)
        module(*inputs)
    for part in module.modules():
        part._forward_pre_hooks.clear()
    return module


def _deviation(part: nn.Module, parameter: nn.Parameter) -> float:
    """Keeps what a layer gives about as large as what it receives; a power of two."""
    if parameter.dim() < 2 or isinstance(part, nn.Embedding):
        return 0.25
    terms = parameter.numel() // parameter.shape[0]
    return 2.0 ** round(torch.tensor(terms).log2().item() / -2)


def _measure(norm: nn.BatchNorm2d, inputs: Inputs) -> None:
    """Takes variances that bring `inputs` to about 1, powers of four, and means that are smaller than that."""
    power = 4.0 ** (inputs[0].square().mean().log2() / 2).round()
    norm.running_mean.copy_(torch.randn_like(norm.running_mean) * power.sqrt() / 4)
    norm.running_var.copy_(power * torch.tensor([1.0, 0.25, 1.0])[torch.arange(norm.num_features) % 3] - norm.eps)


def picture(rows: int, columns: int) -> Callable[[], Inputs]:
    return lambda: (torch.randn(1, 3, rows, columns),)


def _bert(layers: int, width: int, heads: int, vocab: int, length: int) -> Net:
    def inputs() -> Inputs:
        segments, seen = torch.zeros(1, length, dtype=torch.int64), torch.ones(1, length)
        segments[:, length // 2 :] = 1
        seen[:, length - 3 :] = 0
        return torch.randint(vocab, (1, length)), segments, seen

    return Net(functools.partial(Bert, width, heads, layers, vocab, 512), inputs)


def _whisper(layers: int, width: int, heads: int, vocab: int, frames: int, length: int) -> dict[str, Net]:
    return {
        "whisper_encoder": Net(
            functools.partial(WhisperEncoder, width, heads, layers, frames), lambda: (torch.randn(1, 80, 2 * frames),)
        ),
        "whisper_decoder": Net(
            functools.partial(WhisperDecoder, width, heads, layers, vocab, 448),
            lambda: (torch.randint(vocab, (1, length)), torch.randn(1, frames, width)),
        ),
    }


def _mobilenet3(short: bool) -> nn.Module:
    settings, last = mobilenetv3._mobilenet_v3_conf("mobilenet_v3_small")
    return mobilenetv3.MobileNetV3(settings[:4] if short else settings, last)


def _efficientnet(short: bool) -> nn.Module:
    settings, last = efficientnet._efficientnet_conf("efficientnet_b0", width_mult=1.0, depth_mult=1.0)
    return efficientnet.EfficientNet(settings[:3] if short else settings, 0.2, last_channel=last)


# What torch.nn.MultiheadAttention becomes has two operators in each layer that the partitioner does not know.
OF_ATTENTION = frozenset({"aten::any.out", "aten::mul.Scalar_out"})


def _vit(picture_size: int, layers: int, heads: int, width: int) -> Net:
    make = functools.partial(VisionTransformer, picture_size, 16, layers, heads, width, 4 * width)
    return Net(make, picture(picture_size, picture_size), 2 * layers + 1, OF_ATTENTION)


PUBLISHED = {
    "mobilenet_v2": Net(MobileNet2, picture(96, 96)),
    "mobilenet_v3_small": Net(lambda: _mobilenet3(short=False), picture(96, 96)),
    "resnet18": Net(lambda: ResNet(resnet.BasicBlock, [2, 2, 2, 2]), picture(96, 96)),
    "efficientnet_b0": Net(lambda: _efficientnet(short=False), picture(96, 96)),
    "vit_b_16": _vit(96, layers=12, heads=12, width=768),
    "bert_base": _bert(layers=12, width=768, heads=12, vocab=30522, length=128),
    **_whisper(layers=4, width=384, heads=6, vocab=51865, frames=1500, length=16),
    "unet": Net(lambda: unet(64, 3), picture(64, 64)),
}

SHORT = {
    "mobilenet_v2": Net(lambda: MobileNet2(10, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2]]), picture(32, 40)),
    "mobilenet_v3_small": Net(lambda: _mobilenet3(short=True), picture(32, 40)),
    "resnet18": Net(lambda: ResNet(resnet.BasicBlock, [1, 1, 0, 0], num_classes=10), picture(32, 40)),
    "efficientnet_b0": Net(lambda: _efficientnet(short=True), picture(32, 40)),
    "vit_b_16": _vit(32, layers=2, heads=3, width=96),
    "bert_base": _bert(layers=2, width=96, heads=3, vocab=100, length=17),
    **_whisper(layers=2, width=96, heads=3, vocab=100, frames=20, length=7),
    "unet": Net(lambda: unet(8, 1), picture(20, 28)),
}
