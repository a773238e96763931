"""The example scenes: each runs from the command line, and its motion is what its comments say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Sweep, Trajectory
from implicit_geom.commands.cli import main

SCENES = Path(__file__).resolve().parents[2] / "experiments" / "scenes"
G = 9.81
NAMES = ("egg", "rolling_disc", "collision", "dumbbell", "coin", "pushed_box")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trajectory]:
    """Every scene, run by `implicit-geom run` and read back."""
    folder = tmp_path_factory.mktemp("scenes")
    found = {}
    for name in NAMES:
        output = folder / f"{name}.h5"
        assert main(["run", str(SCENES / f"{name}.toml"), "-o", str(output)]) == 0
        found[name] = Trajectory.load(output)
    return found


def test_every_scene_is_here() -> None:
    """No scene file without a test, and each begins with a comment on what it shows."""
    files = {path.stem: path.read_text() for path in SCENES.glob("*.toml")}
    assert set(files) == {*NAMES, "egg_sweep"}
    assert all(text.startswith("# ") for text in files.values())


@pytest.mark.parametrize("name", NAMES)
def test_laws(runs: dict[str, Trajectory], name: str) -> None:
    """No overlap, the certificate's residuals, and a balance of energy that closes."""
    run = runs[name]
    assert run.max_penetration < 1e-12
    for residual in ("dynamics", "complementarity", "friction"):
        assert np.max(run.steps[residual]) < 1e-8
    assert abs(run.ledger["remainder"].sum()) < 2e-4 * np.max(run.energy)


def test_egg(runs: dict[str, Trajectory]) -> None:
    """The impact takes 1.76 J; afterwards the energy changes by friction alone, but for the steps' error."""
    run = runs["egg"]
    assert run.ledger["impact"].sum() == pytest.approx(1.764, abs=2e-3)
    later = run.time > 0.5
    assert np.ptp(run.energy[later]) < 1e-3 * run.energy[0]
    assert np.all(run["egg"].position[:, 2] > 0.3 - 1e-12)


def test_rolling_disc(runs: dict[str, Trajectory]) -> None:
    """The disc keeps its energy to rounding, rolls 6 m and sticks all the time."""
    run = runs["rolling_disc"]
    assert np.ptp(run.energy) < 1e-12 * run.energy[0]
    np.testing.assert_allclose(run["disc"].position[-1], (-6.0, 1.0), atol=1e-10)
    assert set(run.contacts["mode"]) == {"stick"}


def test_collision(runs: dict[str, Trajectory]) -> None:
    """Momentum is kept and the speed of parting is 0.8 of that of meeting."""
    heavy, light = (runs["collision"][name].velocity[-1] for name in ("heavy", "light"))
    np.testing.assert_allclose(2 * heavy + light, (1.0, 0, 0), atol=1e-12)
    assert light[0] - heavy[0] == pytest.approx(0.8 * 2.0, abs=1e-9)


def test_dumbbell(runs: dict[str, Trajectory]) -> None:
    """It comes to rest on both balls, a ball's radius above the ground, with two rows of contact."""
    run = runs["dumbbell"]
    assert run["dumbbell"].position[-1, 2] == pytest.approx(0.1, abs=1e-9)
    assert run.kinetic_energy[-1] < 1e-9
    last = run.contacts[run.contacts["time"] == run.time[-1]]
    assert len(last) == 2
    assert last["p_n"].sum() == pytest.approx(1.0 * G * 0.01, rel=1e-6)


def test_coin(runs: dict[str, Trajectory]) -> None:
    """Torsional friction e_r mu m g stops the coin when it should, at a constant rate."""
    run = runs["coin"]
    spin = run["coin"].angular_velocity[:, 2]
    rate = 0.02 * 0.18 * G / (0.03**2 / 2)
    expected = np.maximum(40 - rate * run.time, 0.0)
    np.testing.assert_allclose(spin, expected, atol=rate * 0.005)
    assert spin[-1] == pytest.approx(0.0, abs=1e-9)


def test_pushed_box(runs: dict[str, Trajectory]) -> None:
    """(8 - 0.5 * 9.81) N on 1 kg for a second, flat on the floor."""
    box = runs["pushed_box"]["box"]
    np.testing.assert_allclose(box.velocity[-1], (8 - 0.5 * G, 0, 0), atol=1e-9)
    np.testing.assert_allclose(box.position[:, 2], 0.1, atol=1e-12)


def test_sweep(tmp_path: Path) -> None:
    """Six runs, none failed; no run gains energy or sinks in."""
    assert main(["sweep", str(SCENES / "egg_sweep.toml"), "-o", str(tmp_path), "--workers", "1"]) == 0
    table = Sweep.load(tmp_path).table
    assert len(table["run"]) == 6
    assert set(table["bodies.egg.shape.a"]) == {0.4, 0.5}
    assert np.all(table["energy_lost"] > 0)
    assert np.max(table["max_penetration"]) < 1e-12
