"""Programs run through `executorch.runtime` in Python, on the delegate."""

import ctypes
from pathlib import Path

import numpy
import pytest
import torch
from conftest import Forward, Golden, assert_close, models_dir

pytestmark = pytest.mark.usefixtures("delegate")


@pytest.mark.parametrize("name", ["llama", "llama_tied", "qwen2", "qwen2_tied", "qwen3", "qwen3_tied"])
@pytest.mark.parametrize("case", ["1", "7 in chunks", "bound", "beyond the bound in chunks"])
def test_logits_equal_eager(name: str, case: str) -> None:
    golden = Golden(models_dir() / "tiny" / name)
    forward = Forward(golden.pte)
    for call in golden.cases[case]:
        found = forward(call["tokens"], call["pos"])
        assert_close(found, golden.logits(call), f"{name}, {case}, position {call['pos']}")


def test_two_handles_keep_separate_caches(tiny_llama: Golden) -> None:
    first, second = Forward(tiny_llama.pte), Forward(tiny_llama.pte)
    one, other = tiny_llama.cases["7"], tiny_llama.cases["64"]
    for left, right in zip(one, other):
        assert_close(first(left["tokens"], left["pos"]), tiny_llama.logits(left), f"first, position {left['pos']}")
        assert_close(second(right["tokens"], right["pos"]), tiny_llama.logits(right), f"second, position {right['pos']}")


def test_same_input_gives_the_same_bytes(tiny_llama: Golden) -> None:
    forward = Forward(tiny_llama.pte)
    tokens = tiny_llama.cases["64"][0]["tokens"]
    first = forward(tokens, 0)
    assert all(numpy.array_equal(first, forward(tokens, 0)) for _ in range(5))


@pytest.mark.parametrize("length, pos", [(97, 0), (4, 157), (1, 160), (1, -1), (0, 0)])
def test_what_does_not_fit_raises_and_changes_nothing(tiny_llama: Golden, length: int, pos: int) -> None:
    assert (tiny_llama.bound, tiny_llama.context) == (96, 160)
    forward = Forward(tiny_llama.pte)
    prefill, step = tiny_llama.cases["7"][:2]
    forward(prefill["tokens"], 0)
    with pytest.raises(RuntimeError):
        forward([1] * length, pos)
    assert_close(forward(step["tokens"], step["pos"]), tiny_llama.logits(step), "the step after the error")


def test_missing_operators_are_listed_together(tiny_llama: Golden, capfd: pytest.CaptureFixture[str]) -> None:
    program = tiny_llama.pte.read_bytes()
    unknown = {b"aten.sigmoid.default": b"aten.sigmoiX.default", b"aten.add.Tensor": b"aten.adX.Tensor"}
    for known, renamed in unknown.items():
        assert known in program
        program = program.replace(known, renamed)
    with pytest.raises(RuntimeError):
        Forward(program)
    printed = "".join(capfd.readouterr())
    for renamed in unknown.values():
        assert f"{renamed.decode()}(" in printed, f"{renamed.decode()} is missing from:\n{printed}"


def test_foreign_payload_raises(tiny_llama: Golden) -> None:
    program = bytearray(tiny_llama.pte.read_bytes())
    header = program.index(b"VH00")
    program[header : header + 4] = b"XXXX"
    with pytest.raises(RuntimeError):
        Forward(bytes(program))


class Memory(ctypes.Structure):
    """`EtwgpuMemory`: bytes on devices."""

    _fields_ = [(name, ctypes.c_uint64) for name in
                ("weights", "caches", "activations", "scratch", "staging", "parameters", "peak")]  # fmt: skip


def test_methods_of_one_program_share_their_weights(delegate: Path) -> None:
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.runtime import Runtime

    def held() -> int:
        memory = Memory()
        assert ctypes.CDLL(delegate).etwgpu_memory(ctypes.byref(memory)) == 0
        return memory.weights

    layer = torch.nn.Linear(256, 250).eval()
    inputs = {"one": torch.randn(1, 256), "many": torch.randn(5, 256)}
    exported = {name: torch.export.export(layer, (x,)) for name, x in inputs.items()}
    partitioner = {name: [WebGPUPartitioner()] for name in inputs}
    lowered = to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
    program, other = (Runtime.get().load_program(bytes(lowered.buffer)) for _ in range(2))
    before = held()
    one = program.load_method("one")
    alone = held() - before
    assert alone >= 4 * 256 * 250
    many = program.load_method("many")
    assert held() - before == alone
    another = other.load_method("many")
    assert held() - before == 2 * alone, "programs do not share: one of them may name its data wrongly"
    for name, method in (("one", one), ("many", many), ("many", another)):
        torch.testing.assert_close(method.execute((inputs[name],))[0], layer(inputs[name]), atol=1e-4, rtol=1e-4)
