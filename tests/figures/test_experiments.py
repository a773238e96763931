"""Every experiment's claims hold in its quick form, through the same path as the command line."""

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import experiments
from implicit_geom.experiments import benchmarks
from implicit_geom.experiments.runner import reproduce


@pytest.mark.parametrize("name", list(experiments.REGISTRY))
def test_quick_form_passes_its_checks_and_draws(name: str, tmp_path: Path) -> None:
    assert reproduce(name, experiments.REGISTRY[name], tmp_path, quick=True)
    pictures = sorted(path.suffix for path in (tmp_path / name).iterdir() if path.suffix != ".csv")
    assert pictures.count(".png") == pictures.count(".pdf") >= 1


@pytest.mark.parametrize("name", list(benchmarks.REGISTRY))
def test_quick_form_of_a_benchmark_passes_its_checks(name: str, tmp_path: Path) -> None:
    """No time is judged: all drops are solved, compiled code agrees, what is measured is finite."""
    assert reproduce(name, benchmarks.REGISTRY[name], tmp_path, quick=True)


def test_a_wrong_number_fails_its_check() -> None:
    """Negative control: a thousandth of the friction moment too much is noticed."""
    spin = experiments.REGISTRY["c07-spin"]
    tables = spin.run(spin.PARAMS)
    assert all(check.passed for check in spin.check(tables))
    tables["velocities"]["w_z"] = tables["velocities"]["w_z"] * 1.001
    assert not all(check.passed for check in spin.check(tables))


def test_a_registry_knows_its_names_and_nothing_else() -> None:
    assert "c07-disc" in experiments.REGISTRY
    assert "c07" not in experiments.REGISTRY
    assert len(experiments.REGISTRY) == len(list(experiments.REGISTRY)) == 36
    assert all(np.size(module.TITLE) for module in experiments.REGISTRY.values())
