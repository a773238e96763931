"""`implicit-geom compare`: the same scene under several steppers, or all combinations of the switches."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from implicit_geom.commands.run import read_stepper, scene_and_options
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.writing import check_input_kept
from implicit_geom.run.trajectory import Trajectory


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("compare", parents=[debug], help="the same scene under several steppers")
    p.add_argument("scene", metavar="SCENE.toml", help="a scene file")
    p.add_argument(
        "--steppers",
        metavar="A,B,C",
        help="names, with fields after colons: stewart-trinkle:facets=1000:directions=4",
    )
    p.add_argument("--all", action="store_true", help="the sixteen combinations of the four switches")
    p.add_argument("--facets", type=int, metavar="N", help="with --all: vertices of faceted shapes")
    p.add_argument("--directions", type=int, metavar="K", help="with --all: directions of the pyramid")
    p.add_argument("--reference", metavar="RUN.h5", help="a saved run to measure against")
    p.add_argument("--step", type=float, metavar="H", help="step in s, instead of the scene file's")
    p.add_argument("--duration", type=float, metavar="T", help="duration in s, instead of the scene file's")
    p.add_argument("-o", "--output", default="compared", metavar="DIR", help="where to write (compared)")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.studies.compared_runs import combinations
    from implicit_geom.studies.comparison import compare
    from implicit_geom.studies.comparison_figures import parts_of

    scene, options = scene_and_options(chosen)
    steppers: Any = None
    counts = {k: v for k in ("facets", "directions") if (v := getattr(chosen, k)) is not None}
    if chosen.all and chosen.steppers:
        raise SceneError("--all and --steppers: give one of them")
    if counts and not chosen.all:
        raise SceneError(f"--{next(iter(counts))}: goes with --all; in --steppers give NAME:facets=N")
    if chosen.all:
        steppers = combinations(**counts)
    elif chosen.steppers:
        steppers = {text.strip(): read_stepper(text) for text in chosen.steppers.split(",")}
    folder = Path(chosen.output)
    outputs = [folder / name for name in ("comparison.csv", "comparison.png", "attribution.csv")]
    for source in filter(None, (chosen.scene, chosen.reference)):
        check_input_kept(Path(source), *outputs)
    reference = Trajectory.load(chosen.reference) if chosen.reference else None
    found = compare(scene, **options, steppers=steppers, reference=reference)
    print(found)
    for part in parts_of(found).values():
        print(part)
    if chosen.all:
        print("S faceted surface, G gap linearised, W wrench at the start, F friction pyramid; - exact")
    for path in found.save(folder):
        print(f"saved {path}")
    return 0 if found.finished else 1
