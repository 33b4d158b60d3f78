"""Fixtures: where the delegate and the exported models are, and how to run a program."""

import json
import os
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from differential import REPORT

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 1e-3


def models_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ETWGPU_MODELS") or Path(base) / "executorch-webgpu" / "models")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=400, help="number of random modules")
    parser.addoption("--seed", type=int, help="run the random module of this number alone")
    parser.addoption("--record", type=Path, help="leave the programs of random modules and their inputs in this folder")
    parser.addoption("--recorded", type=Path, help="compare the results that another machine left in this folder")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if report := config.stash.get(REPORT, None):
        terminalreporter.write_line(f"random modules: {report}")


class Golden:
    """A program with the answers of eager PyTorch to a list of calls."""

    def __init__(self, stem: Path) -> None:
        self.pte = stem.with_name(stem.name + ".pte")
        description = json.loads(stem.with_name(stem.name + ".json").read_text())
        self.vocab, self.bound, self.context = (description[key] for key in ("vocab", "bound", "context"))
        self.cases = {case["name"]: case["calls"] for case in description["cases"]}
        self._logits = numpy.fromfile(stem.with_name(stem.name + ".f32"), "<f4")

    def logits(self, call: dict) -> numpy.ndarray:
        return self._logits[call["logits"] : call["logits"] + self.vocab]


class Forward:
    """A freshly loaded `forward` of a program of the llama family."""

    def __init__(self, pte: Path | bytes) -> None:
        from executorch.runtime import Runtime

        self._program = Runtime.get().load_program(pte)
        self._method = self._program.load_method("forward")

    def __call__(self, tokens: list[int], pos: int) -> numpy.ndarray:
        inputs = torch.tensor([tokens], dtype=torch.int64), torch.tensor([pos])
        return self._method.execute(inputs)[0].numpy().reshape(-1).copy()


class Lowered:
    """A module, lowered with options of the partitioner and loaded, and the operators that stay outside of delegates."""

    def __init__(
        self, path: Path, module: torch.nn.Module, inputs: tuple[Any, ...], dynamic: Any = None, **options: bool
    ) -> None:
        from etwgpu_export.lower import _keep_pattern_graphs
        from executorch.backends.webgpu.partitioner import WebGPUPartitioner
        from executorch.exir import to_edge_transform_and_lower
        from executorch.runtime import Runtime

        _keep_pattern_graphs()
        exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic)
        lowered = to_edge_transform_and_lower(exported, partitioner=[WebGPUPartitioner(options)]).to_executorch()
        plan = lowered.executorch_program.execution_plan[0]
        self.outside = {operator.name for operator in plan.operators}
        path.write_bytes(lowered.buffer)
        self._program = Runtime.get().load_program(path)
        self._method = self._program.load_method("forward")

    def __call__(self, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        return self._method.execute(inputs)


def assert_close(found: numpy.ndarray, expected: numpy.ndarray, what: str) -> None:
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    error = numpy.abs(found - expected) / numpy.maximum(1.0, numpy.abs(expected))
    worst = int(error.argmax())
    assert error[worst] <= TOLERANCE, f"{what}: logit {worst} is {found[worst]}, expected {expected[worst]}"


@pytest.fixture(scope="session")
def delegate() -> Path:
    """Registers the delegate in this process; the path of its library."""
    import executorch_webgpu

    return executorch_webgpu.library_path


@pytest.fixture(scope="session")
def tiny_llama() -> Golden:
    return Golden(models_dir() / "tiny" / "llama")
