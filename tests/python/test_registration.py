"""Loading the plug-in, in processes of their own: before and after ExecuTorch's runtime, by path and by package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Golden, models_dir

RUN = """
import numpy, sys, torch
from executorch.runtime import Runtime
runtime = Runtime.get()
assert runtime.backend_registry.is_available("VulkanBackend")
program = runtime.load_program(sys.argv[1])
logits = program.load_method("forward").execute((torch.tensor([[int(word) for word in sys.argv[2].split()]]), torch.tensor([0])))[0]
print(int(logits.argmax()))
"""
LOAD = "import ctypes, os; ctypes.CDLL(os.environ['ETWGPU_BACKEND'])\n"
ORDERS = {
    "plug-in, then runtime": LOAD + RUN,
    "runtime, then plug-in": "import executorch.runtime\n" + LOAD + RUN,
    "package, then runtime": "import executorch_webgpu\n" + RUN,
    "runtime, then package": "import executorch.runtime, executorch_webgpu\n" + RUN,
    "plug-in twice": LOAD + LOAD + RUN,
}


def run_python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_runs_whatever_is_loaded_first(order: str, tiny_llama: Golden) -> None:
    call = tiny_llama.cases["7"][0]
    backend = os.environ.get("ETWGPU_BACKEND") or str(ROOT / "build" / "libexecutorch_backend_webgpu.so")
    tokens = " ".join(str(token) for token in call["tokens"])
    result = run_python(ORDERS[order], str(tiny_llama.pte), tokens, ETWGPU_BACKEND=backend)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[-1]) == int(tiny_llama.logits(call).argmax())


def test_a_missing_library_is_named() -> None:
    result = run_python("import executorch_webgpu", ETWGPU_BACKEND="/nonexistent/plugin.so")
    assert result.returncode != 0
    assert "/nonexistent/plugin.so" in result.stderr and "ETWGPU_BACKEND" in result.stderr


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    fake = tmp_path / "plugin.so"
    fake.write_text("not a library")
    result = run_python("import executorch_webgpu", ETWGPU_BACKEND=str(fake))
    assert "ImportError" in result.stderr and str(fake) in result.stderr


def test_exporting_needs_no_delegate() -> None:
    code = "import sys, etwgpu_export.tiny, etwgpu_export.smollm2; assert 'executorch_webgpu' not in sys.modules"
    result = run_python(code, ETWGPU_BACKEND="/nonexistent/plugin.so", ETWGPU_MODELS=str(models_dir()))
    assert result.returncode == 0, result.stderr
