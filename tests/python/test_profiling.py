"""What ExecuTorch's profiler shows of a delegated call: an ETDump, read by the Inspector of its developer tools."""

import re
from pathlib import Path

import pytest
import torch
from conftest import Golden, assert_close

pytestmark = [pytest.mark.usefixtures("delegate"), pytest.mark.filterwarnings("ignore:Output Buffer not found")]

# The operators that a layer of the model is made of, and one of its kernels, as a step's name has them: the operators, the
# kernel with its constants, and the workgroups in angle brackets.
OPERATORS = ["et_vk.embedding_q4gsw.default", "et_vk.rms_norm.default", "et_vk.linear_q4gsw.default",
             "sdpa_with_kv_cache.default"]
NAME = re.compile(r"[a-z_]+(\.\w+)+(\+[a-z_]+(\.\w+)+)* [a-z_0-9]+.* <\d+(x\d+)*>")


def trace(golden: Golden, traced: bool, path: Path) -> tuple[torch.Tensor, bool]:
    """The logits of one call, and whether a dump was written to `path`."""
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    module = _load_for_executorch(str(golden.pte), enable_etdump=traced)
    call = golden.cases["7"][0]
    logits = module.run_method("forward", (torch.tensor([call["tokens"]]), torch.tensor([call["pos"]])))[0]
    assert_close(logits.numpy().reshape(-1), golden.logits(call), f"traced: {traced}")
    if module.has_etdump():
        module.write_etdump_result_to_file(str(path))
    return logits, path.exists()


def test_the_inspector_shows_named_and_timed_steps(tiny_llama: Golden, tmp_path: Path) -> None:
    from executorch.devtools import Inspector

    path = tmp_path / "trace.etdp"
    _, written = trace(tiny_llama, True, path)
    assert written
    blocks = {block.name: block for block in Inspector(etdump_path=str(path)).event_blocks}
    steps = [event for event in blocks["Execute"].events if event.is_delegated_op]
    assert len(steps) >= len(OPERATORS)
    for step in steps:
        assert NAME.fullmatch(step.name), step.name
        assert step.perf_data is not None and step.perf_data.raw and min(step.perf_data.raw) > 0, step.name
    for operator in OPERATORS:
        assert any(operator in step.name.split(" ")[0].split("+") for step in steps), operator
    whole = next(event for event in blocks["Execute"].events if event.name == "DELEGATE_CALL")
    assert max(time for step in steps for time in step.perf_data.raw) <= max(whole.perf_data.raw)


def test_without_a_tracer_there_is_no_trace_and_the_result_is_the_same(tiny_llama: Golden, tmp_path: Path) -> None:
    path = tmp_path / "trace.etdp"
    plain, written = trace(tiny_llama, False, path)
    assert not written
    traced, _ = trace(tiny_llama, True, path)
    assert torch.equal(plain, traced)
