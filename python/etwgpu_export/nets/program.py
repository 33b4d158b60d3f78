"""A network -> a program, what of it the delegate got, and how far its outputs are from eager PyTorch's."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from etwgpu_export.lower import _keep_pattern_graphs
from etwgpu_export.nets.zoo import Inputs

TYPES = {"f32": torch.float32, "f16": torch.float16}
# Roundings that a layer's result has gone through, in the worst of many: sums are in f32 whatever the type.
ROUNDINGS = {"f32": 24, "f16": 1.5}


def tolerance(kind: str, module: nn.Module) -> float:
    """How far an output may be from eager PyTorch's in f32, relative to the largest output.

    Errors of the layers with weights add like random steps.
    """
    layers = sum(isinstance(part, nn.Linear | nn.modules.conv._ConvNd | nn.Embedding) for part in module.modules())
    return ROUNDINGS[kind] * torch.finfo(TYPES[kind]).eps * max(1, layers) ** 0.5


@dataclass(frozen=True)
class Program:
    """The bytes of a `.pte`, the number of its delegate calls, and the operators outside of delegates."""

    pte: bytes
    delegates: int
    outside: frozenset[str]


def lower(module: nn.Module, inputs: Inputs, kind: str) -> Program:
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner
    from executorch.exir import to_edge_transform_and_lower

    _keep_pattern_graphs()
    exported = torch.export.export(module, inputs)
    partitioner = WebGPUPartitioner({"force_fp16": kind == "f16"})
    lowered = to_edge_transform_and_lower(exported, partitioner=[partitioner]).to_executorch()
    plan = lowered.executorch_program.execution_plan[0]
    calls = [type(instruction.instr_args).__name__ for instruction in plan.chains[0].instructions]
    names = frozenset(f"{operator.name}.{operator.overload}".rstrip(".") for operator in plan.operators)
    return Program(bytes(lowered.buffer), calls.count("DelegateCall"), names)


class Loaded:
    """A program's `forward`, loaded through ExecuTorch's runtime."""

    def __init__(self, pte: bytes | Path) -> None:
        from executorch.runtime import Runtime

        self._program = Runtime.get().load_program(pte)
        self._method = self._program.load_method("forward")

    def __call__(self, inputs: Inputs) -> list[torch.Tensor]:
        return self._method.execute(inputs)

    def milliseconds(self, inputs: Inputs) -> float:
        start = time.perf_counter()
        self(inputs)
        return 1e3 * (time.perf_counter() - start)


def outputs(value: Any) -> Inputs:
    return value if isinstance(value, tuple) else (value,)


def error(found: list[torch.Tensor], expected: Inputs) -> float:
    """The largest difference, relative to the largest expected value of that output; infinite where types or shapes differ
    or a value of either side is not finite."""
    worst = 0.0
    for left, right in zip(found, expected, strict=True):
        same = (left.dtype, left.shape) == (right.dtype, right.shape)
        if not same or not left.isfinite().all() or not right.isfinite().all():
            return float("inf")
        worst = max(worst, float((left - right).abs().max() / right.abs().max()))
    return worst
