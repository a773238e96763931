"""`implicit-geom sweep`: a scene file simulated for every combination of some values.

scene = "egg.toml"             a scene file, seen from the sweep file's folder; or its tables
summary = ["energy_lost"]      quantities of `implicit_geom.studies.sweeps.summaries`, or a table of labels
[simulation]                   options that replace the scene file's
[values]
bodies.egg.shape.a = [0.4, 0.5]
friction.mu = { start = 0.1, stop = 0.5, count = 5 }
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.text_files import read_toml
from implicit_geom.interface.words import shown
from implicit_geom.process.signals import status
from implicit_geom.scene.options import hint
from implicit_geom.scene.scene_file import SIMULATION, read_scene
from implicit_geom.shapes.errors import ShapeError

KEYS = ("scene", "summary", "simulation", "values")


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("sweep", parents=[debug], help="a scene under every combination of some values")
    p.add_argument("sweep", metavar="SWEEP.toml", help="the scene, the values and what to keep of each run")
    p.add_argument("-o", "--output", metavar="DIR", help="folder of sweep.csv (default: the file's name)")
    p.add_argument("--engine", default="local", metavar="NAME", help="where the runs are made (local)")
    p.add_argument("--workers", type=int, metavar="N", help="processes (default: one a processor)")
    p.add_argument("--resume", action="store_true", help="keep the rows that are there, make the others")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.studies.sweeps import Sweep, sweep
    from implicit_geom.studies.sweeps.sweep import CSV

    source = Path(chosen.sweep)
    output = Path(chosen.output or source.stem)
    scene, options, values, summary = read_sweep(source)
    try:
        found = sweep(
            scene,
            values,
            summary,
            output=output,
            engine=chosen.engine,
            workers=chosen.workers,
            resume=chosen.resume,
            **options,
        )
    except KeyboardInterrupt as interrupt:
        if not (output / CSV).exists():
            raise
        rows = len(Sweep.load(output))
        print(
            f"implicit-geom: interrupted; {rows} rows are in {output / CSV}, --resume makes the others",
            file=sys.stderr,
        )
        return status(interrupt)
    failed = np.flatnonzero(found.failed)
    print(f"runs        {len(found)}, {len(failed)} failed")
    for row in failed[:3]:
        print(f"failed      run {found.table['run'][row]}: {found.table['reason'][row]}")
    for name in list(found.table)[list(found.table).index("reason") + 1 :]:
        column = found.table[name][~found.failed]
        if len(column):
            print(f"{name:26} {column.min():.6g} to {column.max():.6g}, median {np.median(column):.6g}")
    print(f"saved       {found.path}")
    return 1 if len(failed) else 0


def read_sweep(source: Path) -> tuple[Any, dict[str, Any], Any, Any]:
    """Scene, options, values and summary of a sweep file."""
    data = read_toml(source)
    for key in data:
        if key not in KEYS:
            raise SceneError(f"{source}: key {shown(key)} is not known{hint(key, KEYS)}")
    for key in ("scene", "summary", "values"):
        if key not in data:
            raise SceneError(f"{source}: {key} is missing; a sweep file has {', '.join(KEYS)}")
    given = data["scene"]
    if not isinstance(given, str | dict):
        raise SceneError(f"{source}: scene = {shown(given)} must be the name of a scene file, or its tables")
    try:
        scene, options = read_scene(source.parent / given if isinstance(given, str) else given)
    except (SceneError, ShapeError) as error:
        raise type(error)(f"{source}: scene: {error}") from None
    more = data.get("simulation", {})
    if not isinstance(more, dict):
        raise SceneError(f"{source}: simulation = {shown(more)} must be a table of keys and values")
    for key in more:
        if key not in SIMULATION:
            raise SceneError(f"{source}: simulation: key {shown(key)} is not known{hint(key, SIMULATION)}")
    return scene, {**options, **more}, data["values"], data["summary"]
