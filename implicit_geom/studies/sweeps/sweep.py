"""`sweep`: a scene simulated for every combination of some values, and a table of what came out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.progress import Progress, reporting
from implicit_geom.interface.words import shown
from implicit_geom.scene.options import hint
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import SIMULATION, scene_of, to_dict
from implicit_geom.studies.sweeps.grid import Point, grid
from implicit_geom.studies.sweeps.rows import Row, Rows, Table, as_table, read, replace
from implicit_geom.studies.sweeps.summaries import columns, read_summary
from implicit_geom.studies.sweeps.workers import check_processes, results
from implicit_geom.version import __version__

CSV, RECORD = "sweep.csv", "sweep.json"
ENGINES = ("local",)


class Sweep:
    """The runs of a sweep: `sweep.table["energy_lost"]`, one row a run in the order of the grid.

    table   columns: run, digest (of scene, options and summary), the values, status ("done" or "failed"),
            reason, the summary
    path    the CSV file, None where none was asked for

    >>> found = sweep(
    ...     scene, {"friction.mu": [0.2, 0.4]}, ["energy_lost"],
    ...     duration=0.1, step=0.01, output="eggs", workers=1,
    ... )
    >>> len(found), found.failed.tolist()
    (2, [False, False])
    >>> Sweep.load("eggs").table["friction.mu"]
    array([0.2, 0.4])
    """

    def __init__(self, table: Table, path: Path | None = None) -> None:
        self.table, self.path = table, path

    def __len__(self) -> int:
        return len(self.table["run"])

    def __repr__(self) -> str:
        where = f", {self.path}" if self.path is not None else ""
        failed = int(np.sum(self.table["status"] != "done")) if "status" in self.table else 0
        runs = len(self.table.get("run", ()))
        return f"<Sweep of {runs} runs, {failed} failed: {', '.join(self.table)}{where}>"

    @property
    def failed(self) -> np.ndarray:
        """(runs,) whether the run did not reach its end."""
        return np.asarray(self.table["status"] != "done")

    @staticmethod
    def load(output: str | Path) -> Sweep:
        """Read a sweep's folder, or its CSV file; SceneError where it is none."""
        path = Path(output)
        path = path / CSV if path.is_dir() else path
        header, rows = read(path)
        return Sweep(as_table(header, rows), path)


@checked_call(CallError, within=nullcontext)
def sweep(
    scene: Scene | str | Path,
    values: Mapping[str, Any],
    summary: Any,
    *,
    output: str | Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    resume: bool = False,
    progress: Progress = None,
    **options: Any,
) -> Sweep:
    """Simulate a scene for every combination of `values`, in processes of this machine.

    scene      a Scene, or a scene file, whose [simulation] table then holds the options
    values     lists by the names of a scene file's fields, "simulation.step" and "simulation.stepper.facets"
               among them; {"start": a, "stop": b, "count": n} for n numbers at equal distances. Names with
               commas between them vary together
    summary    names of quantities, or {label: name or function of a run}
    output     a folder for sweep.csv, written row by row, and sweep.json, what was asked for
    engine     "local"
    workers    processes; as many as there are processors. With one the runs are made in this process
    resume     keep the rows that are in the file, also those of failed runs, and make the others
    progress   as in `simulate`
    options    those of `simulate`: duration, step, stepper, ...

    Quantities: energy_lost, energy_lost_relative, energy_lost_per_metre, distance, lost_in_friction,
    lost_in_impacts, remainder, final_energy, final_kinetic_energy, max_penetration, contacts, steps,
    steps_failed, steps_guarded, iterations, end_time, wall_time, time_per_step, and of a body final_position,
    final_orientation, final_velocity, final_angular_velocity ("final_position.egg" where several move).

    Returns a Sweep. A run that fails is a row with status "failed" and its reason. An interrupt leaves the
    rows of the runs that have ended. In a script, call it under `if __name__ == "__main__":`. SceneError for
    bad input, before any run is made.

    >>> found = sweep(
    ...     scene,
    ...     {"bodies.egg.shape.a": [0.4, 0.5], "friction.mu": [0.2, 0.4]},
    ...     {"lost": "energy_lost", "where": "final_position"},
    ...     duration=0.5,
    ...     step=0.01,
    ...     workers=1,
    ... )
    >>> found.table["lost"].round(4)
    array([0.0981, 0.0981, 0.0981, 0.0981])
    """
    _check(engine, workers)
    scene, options = _scene(scene, options)
    points = grid(scene, values, options)
    wanted = read_summary(scene, summary)
    labels = {label: _name(what) for label, what in wanted.items()}
    digests = [point.digest(labels) for point in points]
    if len(set(digests)) < len(digests):
        raise SceneError("values: two runs of the grid are the same; give each value once")
    names = _value_columns(points)
    header = ["run", "digest", *names, "status", "reason", *columns(scene, wanted)]
    for name in header:
        if header.count(name) > 1:
            raise SceneError(f"summary: label {shown(name)} is the name of another column; choose another")
    if min(workers or os.cpu_count() or 1, len(points)) > 1:
        check_processes(wanted)
    path = _folder(output)
    with Rows(path, header, digests, resume=resume) as rows:
        if path is not None:
            record = {"version": __version__, "scene": to_dict(scene), "values": [p.values for p in points]}
            record |= {"options": points[0].options, "summary": labels}
            replace(path.with_name(RECORD), json.dumps(record, indent=1))
        left = [point for point, digest in zip(points, digests) if digest not in rows.found]
        processes = min(workers or os.cpu_count() or 1, max(len(left), 1))
        ended = closing(results(left, wanted, processes))
        with ended as runs, reporting(progress, max(len(left), 1), "run") as done:
            for count, (number, status, reason, found) in enumerate(runs, 1):
                row: Row = dict.fromkeys(header, np.nan)
                row |= {"run": number, "digest": digests[number], "status": status, "reason": reason}
                rows.append(row | _value_cells(points[number]) | found)
                done(count)
        return Sweep(rows.table(), path)


def _check(engine: Any, workers: Any) -> None:
    if engine == "dask":
        raise SceneError("engine = 'dask' is not available yet; available: local")
    if engine not in ENGINES:
        raise SceneError(f"engine = {shown(engine)} is not known{hint(engine, ENGINES)}")
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise SceneError(f"workers = {shown(workers)} must be a whole number above zero")


def _scene(scene: Any, options: dict[str, Any]) -> tuple[Scene, dict[str, Any]]:
    scene, options = scene_of(scene, options)
    for name in options:
        if name not in SIMULATION:
            raise CallError(
                f"{name} = {shown(options[name])}: sweep has no such option{hint(name, SIMULATION)}"
            )
    return scene, options


def _folder(output: str | Path | None) -> Path | None:
    """The CSV file in a folder, which is made."""
    if output is None:
        return None
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SceneError(f"{output}: cannot be made: {error.strerror}; choose another output") from None
    return Path(output) / CSV


def _name(what: Any) -> str:
    """A quantity in the digest: a function by its name."""
    return f"{what.__module__}.{what.__qualname__}" if hasattr(what, "__qualname__") else str(what)


def _value_columns(points: list[Point]) -> list[str]:
    return list(dict.fromkeys(name for point in points for name in _value_cells(point)))


def _value_cells(point: Point) -> dict[str, Any]:
    """The values of a run by column: a vector in NAME_0, NAME_1, ..., a table as its text."""
    cells: dict[str, Any] = {}
    for name, value in point.values.items():
        if isinstance(value, list) and not any(isinstance(v, list) for v in value):
            cells |= {f"{name}_{i}": v for i, v in enumerate(value)}
        else:
            cells[name] = json.dumps(value) if isinstance(value, list | dict) else value
    return cells
