"""`sweep`: every combination is a row, whatever becomes of its run, and a row is made once."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_steps import before_steps
from sweep_quantities import height, refuse

from implicit_geom import Scene, SceneError, Stepper, Sweep, shapes, simulate, sweep
from implicit_geom.model.model import State
from implicit_geom.model.records import Attempt
from implicit_geom.shapes import ShapeError
from implicit_geom.studies.sweeps import workers
from implicit_geom.studies.sweeps.summaries import ALWAYS, BODY, NAMED

OPTIONS: dict[str, Any] = {"duration": 0.1, "step": 0.01}
HERE: dict[str, Any] = {**OPTIONS, "workers": 1}  # in this process
VALUES: dict[str, Any] = {"bodies.egg.shape.a": [0.4, 0.5], "friction.mu": [0.1, 0.2, 0.3]}


@pytest.fixture
def egg() -> Scene:
    """An egg that slides."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("egg", egg, mass=1.0, position=(0, 0, 0.3), velocity=(1, 0, 0))
    scene.friction(mu=0.4)
    return scene


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default stepper fails at t = 0.05 where a = 0.5."""

    def fails(stepper: Any, state: State) -> Attempt | None:
        unlucky = stepper.model.bodies[1].shape.parameters["a"] == 0.5 and state.time > 0.045
        return Attempt([], "no luck", [[1.0]]) if unlucky else None

    before_steps(monkeypatch, fails)


def test_rows_are_the_runs_of_simulate(egg: Scene, tmp_path: Path) -> None:
    """Every combination, the last name fastest: the numbers of `simulate`, from other processes."""
    wanted = {"lost": "energy_lost", "end": "final_position", "height": height}
    found = sweep(egg, VALUES, wanted, output=tmp_path / "out", workers=2, **OPTIONS)
    assert found.table["friction.mu"].tolist() == [0.1, 0.2, 0.3] * 2
    assert found.table["bodies.egg.shape.a"].tolist() == [0.4] * 3 + [0.5] * 3
    assert found.table["status"].tolist() == ["done"] * 6
    egg.friction(mu=0.2)
    run = simulate(egg, **OPTIONS)
    assert found.table["lost"][4] == run.energy[0] - run.energy[-1]
    assert found.table["height"][4] == found.table["end_z"][4] == run["egg"].position[-1, 2]
    again = Sweep.load(tmp_path / "out")
    assert list(again.table) == list(found.table)
    assert all(np.array_equal(again.table[name], found.table[name]) for name in found.table)


def test_names_varied_together_and_options(egg: Scene) -> None:
    """Joined names vary together; options of the simulation vary like any other value; spans are lists."""
    values = {
        "bodies.egg.shape.c, bodies.egg.position": [(0.2, (0, 0, 0.2)), (0.4, (0, 0, 0.4))],
        "simulation.stepper": ["implicit-euler", "implicit-rattle"],
        "simulation.step": {"start": 0.01, "stop": 0.02, "count": 2},
    }
    found = sweep(egg, values, ["steps", "max_penetration"], **HERE)
    assert len(found) == 8
    assert found.table["bodies.egg.position_2"].tolist() == found.table["bodies.egg.shape.c"].tolist()
    assert found.table["steps"].tolist() == [10, 5] * 4
    assert found.table["max_penetration"].max() < 1e-10


def test_switches_of_a_stepper_vary(egg: Scene) -> None:
    """Facets of a named stepper, and steppers given as such; each run is that of its stepper."""
    values = {"simulation.stepper.facets": [20, 40]}
    found = sweep(egg, values, {"x": "final_position"}, stepper="stewart-trinkle", **HERE)
    assert found.table["simulation.stepper.facets"].tolist() == [20, 40]
    stepper = Stepper.named("stewart-trinkle", facets=40)
    run = simulate(egg, stepper=stepper, **OPTIONS)
    assert found.table["x_x"][1] == run["egg"].position[-1, 0] != found.table["x_x"][0]
    both = sweep(egg, {"simulation.stepper": ["implicit-euler", stepper]}, {"x": "final_position"}, **HERE)
    assert both.table["x_x"][1] == found.table["x_x"][1]
    assert json.loads(both.table["simulation.stepper"][1])["facets"] == 40


def test_a_failed_run_is_a_row(egg: Scene, failing, tmp_path: Path) -> None:
    """Status and reason are kept, quantities of the whole run are not made up, the others go on."""
    found = sweep(egg, VALUES, ["energy_lost", "steps", "steps_failed"], output=tmp_path, **HERE)
    assert found.failed.tolist() == [False] * 3 + [True] * 3
    assert all("no luck" in reason for reason in found.table["reason"][3:])
    assert np.isnan(found.table["energy_lost"][3:]).all()
    assert np.isfinite(found.table["energy_lost"][:3]).all()
    assert found.table["steps"].tolist() == [10] * 3 + [5] * 3
    assert found.table["steps_failed"].tolist() == [0] * 3 + [1] * 3


def test_an_overlap_or_a_bad_quantity_is_a_failed_row(egg: Scene) -> None:
    """What only shows when a run is made, or in a function of the user's, fails that row alone."""
    found = sweep(egg, {"bodies.egg.shape.c": [0.3, 0.4]}, ["energy_lost"], **HERE)
    assert found.table["status"].tolist() == ["done", "failed"]
    assert "overlap by 0.1 m" in found.table["reason"][1]
    found = sweep(egg, {"friction.mu": [0.1]}, {"bad": refuse}, **HERE)
    assert found.table["reason"].tolist() == ["summary['bad']: RuntimeError: not this one"]


def test_resume_makes_what_is_missing(egg: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are there are kept, a line that was cut off is made again, a larger grid is completed."""
    sweep(egg, VALUES, ["energy_lost"], output=tmp_path, **HERE)
    path = tmp_path / "sweep.csv"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    made = []
    execute = workers.execute
    monkeypatch.setattr(workers, "execute", lambda p, s: (made.append(p.number), execute(p, s))[1])
    sweep(egg, VALUES, ["energy_lost"], output=tmp_path, resume=True, **HERE)
    assert made == [5]
    assert path.read_bytes() == whole
    more = {**VALUES, "friction.mu": [0.1, 0.15, 0.2, 0.3]}
    found = sweep(egg, more, ["energy_lost"], output=tmp_path, resume=True, **HERE)
    assert made == [5, 1, 5]
    assert found.table["run"].tolist() == list(range(8))
    assert found.table["friction.mu"].tolist() == [0.1, 0.15, 0.2, 0.3] * 2


def test_resume_refuses_rows_of_another_sweep(egg: Scene, tmp_path: Path) -> None:
    """A digest of scene, options and values tells rows of another sweep; no file is written over."""
    sweep(egg, VALUES, ["energy_lost"], output=tmp_path, **HERE)
    before = (tmp_path / "sweep.csv").read_bytes()
    with pytest.raises(SceneError, match="holds a sweep already"):
        sweep(egg, VALUES, ["energy_lost"], output=tmp_path, **HERE)
    with pytest.raises(SceneError, match="of another scene"):
        sweep(egg, VALUES, ["energy_lost"], output=tmp_path, resume=True, **{**HERE, "step": 0.02})
    with pytest.raises(SceneError, match="other values or summaries"):
        sweep(egg, VALUES, ["steps"], output=tmp_path, resume=True, **HERE)
    assert (tmp_path / "sweep.csv").read_bytes() == before


def test_an_interrupt_leaves_the_rows(egg: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file holds the runs that have ended, and can be read and resumed."""
    execute = workers.execute

    def interrupted(point: Any, summary: Any) -> Any:
        if point.number == 2:
            raise KeyboardInterrupt
        return execute(point, summary)

    monkeypatch.setattr(workers, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(egg, VALUES, ["energy_lost"], output=tmp_path, **HERE)
    assert Sweep.load(tmp_path).table["run"].tolist() == [0, 1]
    monkeypatch.undo()
    assert len(sweep(egg, VALUES, ["energy_lost"], output=tmp_path, resume=True, **HERE)) == 6


def test_every_named_quantity_is_a_number(egg: Scene, tmp_path: Path) -> None:
    """All names of the list work, and the file is plain CSV beside a record of what was asked for."""
    sweep(egg, {"friction.mu": [0.2]}, [*NAMED, *BODY], output=tmp_path, **HERE)
    with (tmp_path / "sweep.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    first = list(row).index("reason") + 1
    assert all(np.isfinite(float(cell)) for cell in list(row.values())[first:])
    assert float(row["energy_lost"]) == pytest.approx(
        float(row["lost_in_friction"]) + float(row["lost_in_impacts"]) - float(row["remainder"])
    )
    assert float(row["distance"]) == pytest.approx(float(row["final_position_x"]), rel=1e-3)
    assert set(ALWAYS) <= set(NAMED)
    record = json.loads((tmp_path / "sweep.json").read_text())
    assert record["options"]["step"] == 0.01
    assert record["scene"]["bodies"]["egg"]["mass"] == 1.0


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no values": ({"values": {}}, "values must name"),
    "unknown body": ({"values": {"bodies.eg.mass": [1]}}, "did you mean 'egg'"),
    "unknown field": ({"values": {"bodies.egg.shape.d": [1]}}, "has no 'd'"),
    "unknown option": ({"values": {"simulation.stp": [1]}}, "did you mean 'step'"),
    "not a list": ({"values": {"friction.mu": 0.2}}, "must be a list"),
    "empty": ({"values": {"friction.mu": []}}, "at least one value"),
    "joined names": ({"values": {"friction.mu, bodies.egg.mass": [[1, 2, 3]]}}, "must hold 2 values"),
    "given twice": ({"values": {"friction.mu, friction.mu": [[1, 2]]}}, "given twice"),
    "same value twice": ({"values": {"friction.mu": [0.1, 0.1]}}, "are the same"),
    "span": ({"values": {"friction.mu": {"start": 0, "stop": 1}}}, "start, stop and count"),
    "negative": ({"values": {"friction.mu": [-1.0]}}, "run 0 (friction.mu = -1.0)"),
    "stepper": ({"values": {"simulation.stepper": ["euler"]}}, "stepper = 'euler'"),
    "switch": ({"values": {"simulation.stepper.facet": [20]}}, "did you mean 'facets'"),
    "quantity": ({"summary": ["energy"]}, "did you mean"),
    "no quantity": ({"summary": []}, "summary"),
    "label": ({"summary": {"friction.mu": "steps"}}, "name of another column"),
    "lambda": ({"summary": {"x": lambda run: 1.0}, "workers": 2}, "cannot be sent"),
    "dask": ({"engine": "dask"}, "not available yet; available: local"),
    "engine": ({"engine": "locla"}, "did you mean 'local'"),
    "workers": ({"workers": 0}, "workers = 0"),
    "no duration": ({"duration": None}, "duration"),
    "option": ({"steps": 0.1}, "did you mean 'step'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, egg: Scene, tmp_path: Path) -> None:
    """Refused before any run is made, naming what to change."""
    changes, words = BAD[case]
    call = {"values": VALUES, "summary": ["steps"], **HERE, **changes}
    with pytest.raises((SceneError, ShapeError)) as caught:
        sweep(egg, **call)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_shape_names_its_run(egg: Scene) -> None:
    with pytest.raises(ShapeError, match=r"run 1 \(bodies.egg.shape.a = -1.0\)"):
        sweep(egg, {"bodies.egg.shape.a": [0.5, -1.0]}, ["steps"], **HERE)


def test_a_script_without_a_guard_is_told_so_before_anything_is_written_again(tmp_path: Path) -> None:
    """Its processes read it once more: their own sweeps are refused in one line that names the guard."""
    script = tmp_path / "bare.py"
    script.write_text(
        "from implicit_geom import shapes\n"
        "from implicit_geom import Scene, sweep\n"
        "scene = Scene(dim=2)\n"
        "scene.add('disc', shapes.disc(1.0), mass=1.0)\n"
        "values = {'bodies.disc.mass': [1.0, 2.0]}\n"
        "sweep(scene, values, ['energy_lost'], duration=0.1, step=0.1, workers=2, output='out')\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'a sweep in a script must be called under if __name__ == "__main__":' in done.stderr
    assert "holds a sweep already" not in done.stderr
