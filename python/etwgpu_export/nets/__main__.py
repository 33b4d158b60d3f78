"""Exports the networks to the cache's folder `nets`, runs them, and prints how near to eager PyTorch they come, and how fast.

The folder has for each network and type a program, and for each network the raw bytes of its inputs and of eager PyTorch's
outputs. A line of `nets.txt` names the program, these files (separated by commas), the tolerance, the number of delegate calls
and the operators on the CPU. Names given as arguments choose what is run.
"""

import sys
from pathlib import Path

import executorch_webgpu  # noqa: F401
import numpy
import torch
from etwgpu_export import cache
from etwgpu_export.nets import program, transformers, zoo
from etwgpu_export.progress import stage

CALLS = 3


def main(names: list[str]) -> int:
    folder = cache.ensure("nets", cache.files(sys.modules[__name__], program, transformers, zoo), _export)
    print("| network, type | delegates | on the CPU | largest error | allowed | ms a call |\n|---|---|---|---|---|---|")
    lines = [line.split() for line in (folder / "nets.txt").read_text().splitlines()]
    chosen = [line for line in lines if not names or line[0].rsplit("-", 1)[0] in names]
    return 0 if all([_measure(folder, *line) for line in chosen]) else 1


def _export(folder: Path) -> None:
    lines = [_export_one(folder, name, kind) for name in zoo.PUBLISHED for kind in program.TYPES]
    (folder / "nets.txt").write_text("".join(lines))


def _export_one(folder: Path, name: str, kind: str) -> str:
    net = zoo.PUBLISHED[name]
    with stage(f"{name}, {kind}"):
        module, inputs = net.build()
        lowered = program.lower(module, inputs, kind)
        found, right = (lowered.delegates, lowered.outside), (net.delegates, net.outside)
        if found != right:
            raise RuntimeError(f"{name}: expected {right} delegate calls and operators on the CPU, found {found}")
        path = folder / f"{name}-{kind}.pte"
        path.write_bytes(lowered.pte)
        files = _write(folder, f"{name}.in", inputs), _write(folder, f"{name}.out", program.outputs(module(*inputs)))
    outside = ",".join(sorted(lowered.outside)) or "nothing"
    return f"{path.stem} {path.name} {' '.join(files)} {program.tolerance(kind, module):.1e} {lowered.delegates} {outside}\n"


def _write(folder: Path, stem: str, tensors: zoo.Inputs) -> str:
    names = [f"{stem}{index}.bin" for index in range(len(tensors))]
    for name, tensor in zip(names, tensors):
        tensor.contiguous().numpy().tofile(folder / name)
    return ",".join(names)


def _measure(
    folder: Path, name: str, path: str, inputs: str, outputs: str, allowed: str, delegates: str, outside: str
) -> bool:
    loaded = program.Loaded(folder / path)
    arguments = zoo.PUBLISHED[name.rsplit("-", 1)[0]].build_inputs()
    found = loaded(arguments)
    expected = (numpy.fromfile(folder / file, "<f4") for file in outputs.split(","))
    right = tuple(torch.from_numpy(values).reshape(like.shape) for values, like in zip(expected, found, strict=True))
    error = program.error(found, right)
    milliseconds = min(loaded.milliseconds(arguments) for _ in range(CALLS))
    print(f"| {name} | {delegates} | {outside} | {error:.1e} | {allowed} | {milliseconds:.0f} |", flush=True)
    return error <= float(allowed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
