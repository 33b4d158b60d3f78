"""Networks as published, cut down in depth and size, exported through the partitioner and run on the delegate, against eager
PyTorch. `cargo xtask nets` runs all of their layers."""

import os
import subprocess
from pathlib import Path

import pytest
import torch
from etwgpu_export.nets import program, zoo

pytestmark = pytest.mark.usefixtures("delegate")


def test_each_published_network_has_a_short_one() -> None:
    assert zoo.SHORT.keys() == zoo.PUBLISHED.keys()


@pytest.mark.parametrize("kind", program.TYPES)
@pytest.mark.parametrize("name", zoo.SHORT)
def test_equals_eager(name: str, kind: str) -> None:
    net = zoo.SHORT[name]
    module, inputs = net.build()
    lowered = program.lower(module, inputs, kind)
    assert (lowered.delegates, lowered.outside) == (net.delegates, net.outside)
    error = program.error(program.Loaded(lowered.pte)(inputs), program.outputs(module(*inputs)))
    assert error <= program.tolerance(kind, module)


def test_error_is_infinite_for_another_shape_or_type_and_for_nan() -> None:
    right = (torch.tensor([1.0, -2.0]),)
    assert program.error([torch.tensor([1.0, -1.0])], right) == 0.5
    assert program.error([torch.tensor([[1.0, -2.0]])], right) == float("inf")
    assert program.error([torch.tensor([1.0, float("nan")])], right) == float("inf")
    assert program.error([torch.tensor([1.0, 2.0]).double()], right) == float("inf")
    for value in (float("nan"), float("inf")):
        assert program.error([torch.tensor([1.0, 2.0])], (torch.tensor([1.0, value]),)) == float("inf")


def test_the_runner_compares_outputs(delegate: Path, tmp_path: Path) -> None:
    runner = Path(os.environ.get("ETWGPU_RUNNER") or delegate.with_name("etwgpu_runner"))
    inputs = (torch.tensor([1.0, 2.0, -4.0]),)
    (tmp_path / "relu.pte").write_bytes(program.lower(torch.nn.ReLU(), inputs, "f32").pte)
    inputs[0].numpy().tofile(tmp_path / "in.bin")

    def run(expected: list[float], tolerance: str) -> subprocess.CompletedProcess[str]:
        torch.tensor(expected, dtype=torch.float32).numpy().tofile(tmp_path / "out.bin")
        words = ["--model_path", "relu.pte", "--inputs", "in.bin", "--expect", "out.bin", "--tolerance", tolerance]
        return subprocess.run([runner, *words], cwd=tmp_path, capture_output=True, text=True)

    assert run([1, 2, 0], "0").returncode == 0
    assert run([1, 2.5, 0], "0.25").returncode == 0
    assert "outputs differ by 2.00e-01, expected at most 1.00e-01" in run([1, 2.5, 0], "0.1").stderr
    assert "output 0 has 12 bytes, expected the 8" in run([1, 2], "1").stderr
    assert run([1, float("nan"), 0], "1e30").returncode == 1
    assert "expected a finite number" in run([1, 2, 0], "inf").stderr
