"""Cases lowered together, as one program, which takes little longer than one of them; each keeps its inputs and outputs."""

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.export import Dim

from differential import numbers
from differential.case import Case
from differential.machine import Elsewhere, Here


NAME = re.compile(rb"(?:aten|et_vk|dim_order_ops)\.\w+\.\w+\0|(?:sym_size\.int|add|sub|mul|floordiv)\0")


class Together(nn.Module):
    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases = nn.ModuleList(case.module() for case in cases)
        self.counts = [len(case.inputs) for case in cases]

    def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rest, results = list(arguments), []
        for case, count in zip(self.cases, self.counts):
            results += case(*rest[:count])
            del rest[:count]
        return tuple(results)


@dataclass
class Report:
    """What came of cases. `outside` has the operators that the partitioner left outside of the delegate, by case."""

    cases: int = 0
    delegated: int = 0
    seeds: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    refused_by_exporter: list[str] = field(default_factory=list)
    outside: dict[int, set[str]] = field(default_factory=dict)
    reached: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Report") -> None:
        self.cases += other.cases
        self.delegated += other.delegated
        self.seeds += other.seeds
        self.failures += other.failures
        self.refused_by_exporter += other.refused_by_exporter
        self.outside |= other.outside
        self.reached += other.reached

    def __str__(self) -> str:
        left = Counter(name for names in self.outside.values() for name in names)
        return "\n".join([
            f"{self.cases} cases: {self.delegated} run by the delegate alone, {len(self.outside)} in part or not delegated, "
            f"{len(self.refused_by_exporter)} not exported, {len(self.failures)} failed",
            f"{len(self.reached)} operators reached the delegate; not delegated: "
            + (", ".join(f"{name} ({count})" for name, count in sorted(left.items())) or "none"),
        ])  # fmt: skip


Machine = Here | Elsewhere


def check(cases: Sequence[Case], machine: Machine) -> Report:
    """Runs cases that share `half` on a machine: together, or in halves where that does not work."""
    report = Report()
    if len(cases) > 1:
        exported = []
        for case in cases:
            try:
                with _exporting():
                    export([case])
                exported.append(case)
            except NotExported as error:
                report.add(_refused(case, error))
        cases = exported
    if cases:
        report.add(_halved(cases, machine))
    return report


def _refused(case: Case, error: Exception) -> Report:
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = f"{case}\n    {type(error).__name__}: {' '.join(lines[:4])[:400]}"
    if isinstance(error, NotExported):
        return Report(1, refused_by_exporter=[text])
    return Report(1, seeds=[case.seed], failures=[text])


def _halved(cases: Sequence[Case], machine: Machine) -> Report:
    try:
        return _check(cases, machine)
    except Exception as error:
        if len(cases) > 1:
            report = _halved(cases[: len(cases) // 2], machine)
            report.add(_halved(cases[len(cases) // 2 :], machine))
            return report
        return _refused(cases[0], error)


class NotExported(Exception):
    """The exporter refused a module, or wrote a program that cannot run anywhere."""


@contextmanager
def _exporting() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise NotExported(f"{type(error).__name__}: {error}") from error


def _check(cases: Sequence[Case], machine: Machine) -> Report:
    with _exporting():
        lowered = _lower(cases)
    plan = lowered.executorch_program.execution_plan[0]
    report = Report(len(cases), outside=_outside(cases, lowered))
    report.delegated = len(cases) - len(report.outside)
    report.reached.update(name for delegate in plan.delegates for name in _chain(_payload(lowered, delegate)))
    if any(_lost_results(lowered)):
        raise NotExported("the exporter lists fewer results of a delegate than the program takes: one is a copy that it removed")
    if _static_results(cases, plan):
        raise NotExported("the exporter wrote a result whose shape changes as one of a fixed shape")
    name = f"{'half' if cases[0].half else 'full'}-{cases[0].seed}-{cases[-1].seed}"
    execute = machine.load(name, bytes(lowered.buffer))
    sizes = max(len(case.sizes) for case in cases)
    for call in [*range(sizes), 0] if sizes > 1 else [0, 0]:
        at = [call % len(case.sizes) for case in cases]
        inputs = tuple(t for case, size in zip(cases, at) for t in case.arguments(size))
        results = execute(inputs, [t for case, size in zip(cases, at) for t in case.run(size)])
        for case, size in zip(cases, at):
            found, results = results[: len(case.outputs)], results[len(case.outputs) :]
            wrong = [f"    size {case.sizes[size]}: {name}: {text}" for name, text in compare(case, size, found) if text]
            if wrong and str(case) not in "".join(report.failures):
                report.seeds.append(case.seed)
                report.failures.append("\n".join([str(case), *wrong]))
    return report


def compare(case: Case, size: int, found: Sequence[torch.Tensor]) -> list[tuple[str, str]]:
    torch.manual_seed(case.seed)
    expected = case.run(size)
    change = numbers.noise(case.half)
    trials = list(zip(*(case.run(size, change) for _ in range(numbers.TRIALS)), strict=True))
    rows = zip(case.outputs, found, expected, trials, strict=True)
    return [(name, numbers.difference(f, e, list(t), case.half)) for name, f, e, t in rows]


def export(cases: Sequence[Case]) -> torch.export.ExportedProgram:
    dynamic: list[Any] = []
    for case in cases:
        n = Dim(f"n{case.seed}", min=1, max=case.sizes[0]) if len(case.sizes) > 1 else None
        dynamic += [{place: n for place in places} or None for places in case.dynamic]
    inputs = tuple(t for case in cases for t in case.arguments(0))
    return torch.export.export(Together(cases).eval(), inputs, dynamic_shapes=(tuple(dynamic),) if dynamic else None)


def _lower(cases: Sequence[Case]) -> Any:
    from etwgpu_export.lower import _keep_pattern_graphs
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner
    from executorch.exir import to_edge_transform_and_lower

    _keep_pattern_graphs()
    partitioner = WebGPUPartitioner({"force_fp16": cases[0].half})
    return to_edge_transform_and_lower(export(cases), partitioner=[partitioner]).to_executorch()


def _outside(cases: Sequence[Case], lowered: Any) -> dict[int, set[str]]:
    """The operators that are left in the graph around the delegates, by the case whose module they come from."""
    outside: dict[int, set[str]] = {}
    for node in lowered.exported_program().graph.nodes:
        name = str(getattr(node.target, "__name__", node.target))
        if node.op != "call_function" or name in ("getitem", "executorch_call_delegate", "alloc"):
            continue
        paths = [path for path, _ in node.meta.get("nn_module_stack", {}).values()]
        numbers_of = {int(path.split(".")[1]) for path in paths if path.startswith("cases.")}
        for number in numbers_of or {0}:
            outside.setdefault(cases[number].seed, set()).add(name)
    return outside


def _payload(lowered: Any, delegate: Any) -> bytes:
    return bytes(lowered.executorch_program.backend_delegate_data[delegate.processed.index].data)


def _lost_results(lowered: Any) -> Iterator[bool]:
    plan = lowered.executorch_program.execution_plan[0]
    for call in (i.instr_args for chain in plan.chains for i in chain.instructions):
        if type(call).__name__ == "DelegateCall":
            payload = _payload(lowered, plan.delegates[call.delegate_index])
            yield len(call.args) != _listed(payload, 3) + _listed(payload, 4)


def _static_results(cases: Sequence[Case], plan: Any) -> bool:
    changes = [len({t.shape for t in sizes}) > 1 for case in cases
               for sizes in zip(*map(case.run, range(len(case.sizes))), strict=True)]  # fmt: skip
    dynamism = [plan.values[index].val.shape_dynamism.name for index in plan.outputs]
    return any(change and name == "STATIC" for change, name in zip(changes, dynamism, strict=True))


def _listed(payload: bytes, field: int) -> int:
    """The length of the list that is a field of a payload's root table: 3 its inputs, 4 its outputs."""

    def number(at: int, kind: str = "<I") -> int:
        return struct.unpack_from(kind, payload, at)[0]

    start = number(10)
    table = start + number(start)
    entry = number(table - number(table, "<i") + 4 + 2 * field, "<H")
    return number(table + entry + number(table + entry)) if entry else 0


def _chain(payload: bytes) -> set[str]:
    """The names of operators in a payload: strings there have their lengths before them and a zero behind."""
    texts = [(match.start(), match[0][:-1]) for match in NAME.finditer(payload)]
    return {text.decode() for at, text in texts if payload[at - 4 : at] == struct.pack("<I", len(text))}
