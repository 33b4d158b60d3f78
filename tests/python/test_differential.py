"""Random modules of one to six operators, on the delegate, against eager PyTorch.

`--seed N` runs the module of that number alone, as a failure names it; `--cases N` another number of modules than 400.
`--record DIR` also leaves the programs and their inputs in DIR, where `sh run.sh RUNNER` runs them on another machine; the
same run with `--recorded DIR` then compares what that machine left there.
"""

from pathlib import Path

import pytest
import torch
from differential import REPORT
from differential.batch import Machine, Report, check
from differential.case import Case, Kind, Line, Value
from differential.machine import Elsewhere, Here, Recorded
from differential.operators import draw_case

pytestmark = pytest.mark.usefixtures("delegate")
TOGETHER = 25
REACHED = Path(__file__).parent / "differential" / "reached.txt"
INF = float("inf")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" not in metafunc.fixturenames:
        return
    seed, cases = metafunc.config.getoption("seed"), metafunc.config.getoption("cases")
    ranges = [range(first, min(first + TOGETHER, cases)) for first in range(0, cases, TOGETHER)]
    ranges = ranges if seed is None else [range(seed, seed + 1)]
    metafunc.parametrize("seeds", ranges, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")


@pytest.fixture(scope="session")
def machine(pytestconfig: pytest.Config) -> Machine:
    record, recorded = pytestconfig.getoption("record"), pytestconfig.getoption("recorded")
    return Elsewhere(recorded) if recorded else Recorded(record) if record else Here()


def test_random_modules(seeds: range, machine: Machine, pytestconfig: pytest.Config) -> None:
    cases = [draw_case(seed) for seed in seeds]
    report = Report()
    for half in (False, True):
        if alike := [case for case in cases if case.half == half]:
            report.add(check(alike, machine))
    pytestconfig.stash.setdefault(REPORT, Report()).add(report)
    repeat = "\n".join(f"repeat: pytest tests/python/test_differential.py --seed {seed}" for seed in report.seeds)
    assert not report.failures, "\n".join(["", *report.failures, repeat])


def test_operators_stay_delegated(pytestconfig: pytest.Config) -> None:
    report = pytestconfig.stash.get(REPORT, Report())
    if report.cases < 400:
        pytest.skip("few modules reach few operators")
    missing = set(REACHED.read_text().split()) - set(report.reached)
    assert not missing, f"no module has these operators on the delegate any more: {', '.join(sorted(missing))}"
    assert report.delegated >= 0.6 * report.cases, str(report)
    assert len(report.refused_by_exporter) <= 0.05 * report.cases, "\n".join(report.refused_by_exporter)


def fixed(text: str, *inputs: torch.Tensor) -> Case:
    """`text` with x1, x2, .. for the inputs."""
    values = [Value(f"x{i}", (tensor,), True) for i, tensor in enumerate(inputs, 1)]
    line = Line(("v1",), text, Kind.ROUNDS)
    return Case(0, [0], inputs=values, lines=[line], outputs=["v1"], dynamic=[()] * len(values))


FIXED = {
    "zero to a negative fraction": lambda t: fixed("torch.pow(x1, x2)", t([0, -0.0, 2]), t([-2.75, -0.5, -1])),
    "zero to a negative fraction, a number": lambda t: fixed("torch.pow(x1, -1.5)", t([0, -0.0, INF, 2])),
    "a window larger than the padded picture": lambda t: fixed("F.max_pool2d(x1, [4, 1], None, [1, 0], 2, True)", t([[[[1, 2]] * 4]])),
    "an infinity divided down": lambda t: fixed('torch.div(x1, x2, rounding_mode="floor")', t([INF, -INF, INF, -3]), t([2, 2, 0, INF])),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", FIXED)
def test_found_before(name: str, dtype: torch.dtype) -> None:
    report = check([FIXED[name](lambda values: torch.tensor(values, dtype=dtype))], Here())
    assert report.delegated == 1 and not report.failures, "\n".join([str(report), *report.failures])


@pytest.mark.parametrize("lists", range(4))
def test_empty_lists_lie_anywhere(lists: int) -> None:
    """Programs whose sizes differ, so that the empty list of a scalar's shape lies at all multiples of four bytes."""
    case = fixed(" + ".join(f"torch.tanh(x{i})" for i in range(1, lists + 2)) + " + 2", *torch.ones(lists + 1, 3))
    report = check([case], Here())
    assert report.delegated == 1 and not report.failures, "\n".join([str(report), *report.failures])
