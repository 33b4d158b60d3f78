"""A pytest plug-in that runs ExecuTorch's own backend tests, which come with its wheel, on this delegate.

`cargo xtask backend-suite` calls it. Each model of a test becomes a *case*, named after the flow, the test and the model's
number. A case that fails must stand in `backend_suite_expected.txt` with the reason; one that stands there must fail.
"""

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import executorch_webgpu  # noqa: F401
import pytest
from etwgpu_export.lower import _keep_pattern_graphs
from executorch.backends.test.suite import flow, reporting, runner
from executorch.backends.test.suite.flows import vulkan
from executorch.backends.test.suite.reporting import TestResult
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.test import tester

EXPECTED = Path(__file__).with_name("backend_suite_expected.txt")
# What a flow may differ by, where the suite's own 0.1 and 4 % would hide faults: absolute and relative.
TOLERANCE = {"vulkan": 1e-4, "f16": 1e-2}


class Tester(tester.VulkanTester):
    """ExecuTorch's tester of what its Vulkan partitioner delegates, with a tolerance of our own."""

    tolerance = TOLERANCE["vulkan"]

    def run_method_and_compare_outputs(self, *args: Any, **named: Any) -> Any:
        return super().run_method_and_compare_outputs(*args, **named | {"atol": self.tolerance, "rtol": self.tolerance})


class HalfTester(Tester):
    tolerance = TOLERANCE["f16"]

    def to_edge_transform_and_lower(self, **named: Any) -> Any:
        partitioner = VulkanPartitioner({"skip_bool_tensors": True, "force_fp16": True})
        return super().to_edge_transform_and_lower(tester.ToEdgeTransformAndLower([partitioner]), **named)


FLOWS = {
    "vulkan": flow.TestFlow("vulkan", "vulkan", Tester),
    "f16": flow.TestFlow("f16", "vulkan", HalfTester),
    "int8": dataclasses.replace(vulkan.VULKAN_STATIC_INT8_PER_CHANNEL_TEST_FLOW, name="int8"),
}


def expected_failures(text: str) -> dict[str, str]:
    """Case -> reason, from lines `case: reason`; lines that start with # and empty ones are comments."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


@dataclasses.dataclass
class Outcomes:
    """What became of the cases."""

    expected: dict[str, str]
    counts: dict[str, Counter[str]] = dataclasses.field(default_factory=lambda: defaultdict(Counter))
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    passed: set[str] = dataclasses.field(default_factory=set)

    def add(self, case: str, summary: reporting.TestCaseSummary, log: str) -> None:
        result = summary.result
        if result == TestResult.SKIPPED:
            kind = "cannot be run by ExecuTorch"
        elif result.is_success():
            kind = "equal" if result == TestResult.SUCCESS else "not delegated"
            self.passed.add(case)
        else:
            kind = "failed as expected" if case in self.expected else "failed"
            self.failed[case] = f"{result.to_detail_str()}: {summary.error}\n{log}".strip()
        self.counts[summary.flow][kind] += 1

    def faults(self) -> Iterator[str]:
        for case in self.failed.keys() - self.expected.keys():
            yield f"{case} failed: {self.failed[case]}"
        for case in self.passed & self.expected.keys():
            yield f"{case} passes, but {EXPECTED.name} expects it to fail"


OUTCOMES = Outcomes(expected_failures(EXPECTED.read_text()))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--flow", action="append", choices=list(FLOWS), help="runs this flow alone; repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the suite our flows, the same random numbers each time, and a runner that goes on after a failure."""
    chosen = {name: FLOWS[name] for name in config.getoption("flow") or FLOWS}
    flow.all_flows = lambda: chosen
    _keep_pattern_graphs()
    reporting.begin_test_session(None, seed=0)
    run, captured = runner.run_test, config.pluginmanager.getplugin("capturemanager")

    def run_test(*args: Any, **named: Any) -> reporting.TestCaseSummary:
        captured.read_global_capture()
        summary = run(*args, **named)
        text = "".join(captured.read_global_capture())
        case = f"{summary.base_name}/{summary.subtest_index}"
        case = f"{summary.flow}/{re.sub(r'^test_', '', case)}"
        OUTCOMES.add(case, summary, "\n".join(line for line in text.splitlines() if re.match(r"\[\w+\.(h|cpp):", line)))
        return summary if summary.result == TestResult.SKIPPED else dataclasses.replace(summary, result=TestResult.SUCCESS)

    runner.run_test = run_test


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and any(OUTCOMES.faults()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("cases")
    for name, counts in OUTCOMES.counts.items():
        terminalreporter.line(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    for case in OUTCOMES.failed.keys() & OUTCOMES.expected.keys():
        terminalreporter.line(f"{case} failed as expected: {OUTCOMES.expected[case]}")
    for fault in OUTCOMES.faults():
        terminalreporter.line(fault)
