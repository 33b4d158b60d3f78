"""Where programs run: in this process, or on a machine that has no Python but `etwgpu_runner`."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

#: Runs a call of a program; the second argument is what eager PyTorch gives, for shapes and types.
Execute = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], list[torch.Tensor]]


class Here:
    def load(self, name: str, program: bytes) -> Execute:
        from executorch.runtime import Runtime

        method = Runtime.get().load_program(program).load_method("forward")
        return lambda inputs, _: [tensor.clone() for tensor in method.execute(tuple(inputs))]


class Recorded(Here):
    """Runs programs here, and leaves each with its inputs in a folder, where `sh run.sh RUNNER` runs them again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.sh").write_text('cd "$(dirname "$0")" || exit 2\n')

    def load(self, name: str, program: bytes) -> Execute:
        execute, calls = super().load(name, program), 0
        (self.folder / f"{name}.pte").write_bytes(program)

        def run(inputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            nonlocal calls
            files = [f"{name}-{calls}.in{index}.bin" for index in range(len(inputs))]
            for file, tensor in zip(files, inputs):
                tensor.contiguous().numpy().tofile(self.folder / file)
            shapes = ";".join(",".join(map(str, tensor.shape)) for tensor in inputs)
            words = ["--model_path", f"{name}.pte", "--inputs", ",".join(files), "--input_shapes", shapes]
            line = shlex.join([*words, "--output_file", f"{name}-{calls}.out"])
            with (self.folder / "run.sh").open("a") as script:
                script.write(f'"$1" {line} >>log.txt 2>&1 || echo {name}-{calls} failed\n')
            calls += 1
            return execute(inputs, expected)

        return run


class Elsewhere:
    """Takes the results that a machine left in a folder of `Recorded`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, name: str, program: bytes) -> Execute:
        calls = 0

        def run(_: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            nonlocal calls
            stem, results = f"{name}-{calls}.out", []
            for index, like in enumerate(expected):
                data = bytearray((self.folder / f"{stem}-{index}.bin").read_bytes())
                flat = torch.frombuffer(data, dtype=like.dtype) if data else torch.empty(0, dtype=like.dtype)
                results.append(flat.reshape(like.shape))
            calls += 1
            return results

        return run
