"""The benchmark `agreement`: every experiment is compared or left out with a reason; differences are seen."""

from types import SimpleNamespace

import numpy as np
import pytest

from implicit_geom import experiments, simulate
from implicit_geom.compiled.runner import Runner
from implicit_geom.experiments import ellipsoid_rolling
from implicit_geom.experiments.benchmarks import agreement
from implicit_geom.experiments.benchmarks.agreement import LEFT_OUT, STEADY, UNSTEADY, compared, names
from implicit_geom.experiments.check import at_most
from implicit_geom.machine.availability import available

pytestmark = pytest.mark.skipif(not available(), reason="compiled code is not at hand")
AGAIN = "work-precision"  # left out because its runs are those of others


def test_every_experiment_has_its_place() -> None:
    """A new experiment is to be named: as steady, or with the reason why not."""
    assert set(LEFT_OUT) <= set(experiments.REGISTRY)
    assert sorted([*STEADY, *UNSTEADY]) == sorted(names())


@pytest.mark.parametrize("name", [name for name in LEFT_OUT if name != AGAIN])
def test_what_is_left_out_takes_no_compiled_step(name: str) -> None:
    module = experiments.REGISTRY[name]
    with compared() as found:
        module.run({**module.PARAMS, **module.QUICK})
    assert found.compiled == 0


def test_a_sweep_is_compared_in_this_process() -> None:
    """Of `shape-loss`, which sweeps in processes, every implicit step is seen."""
    tables = agreement.run({"quick": True, "names": ("shape-loss",)})
    assert tables["agreement"]["compiled"][0] > 0
    assert all(check.passed for check in agreement.check(tables))
    words = agreement.report(tables)
    assert all(f"{name} is left out: {why}" in words for name, why in LEFT_OUT.items())


def test_a_compiled_step_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A velocity off by 1e-11 of itself fails the bound of 1e-12."""
    plain = Runner.run

    def off(*arguments):
        state, solves, steps = plain(*arguments)
        state.v[:] = state.v * (1 + 1e-11)
        return state, solves, steps

    monkeypatch.setattr(Runner, "run", off)
    with compared() as found:
        simulate(ellipsoid_rolling.scene(), duration=0.3, step=0.01, progress=False)
    assert found.compiled > 0
    assert agreement.BOUND < found.velocity < 1e-10
    assert np.isfinite(found.position)


def test_a_check_that_comes_out_otherwise_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment whose second check holds with compiled code only."""

    def run(_params):
        simulate(ellipsoid_rolling.scene(), duration=0.1, step=0.01, progress=False)
        return {"own": {"share": np.array([float(not available())])}}

    def check(tables):
        return [at_most("always", 0, 1), at_most("compiled", tables["own"]["share"][0], 0)]

    module = SimpleNamespace(PARAMS={}, QUICK={}, run=run, check=check)
    monkeypatch.setattr(experiments, "REGISTRY", {"some": module})
    tables = agreement.run({"quick": True, "names": None})
    assert tables["agreement"]["checks"].tolist() == [2]
    assert tables["agreement"]["changed"].tolist() == [1]
    assert [c.name for c in agreement.check(tables) if not c.passed] == [
        "checks of experiments that come out otherwise"
    ]
