"""`implicit-geom advise`: the cheapest stepper and step that meet a tolerance, from short trials."""

from __future__ import annotations

import argparse
from typing import Any

from implicit_geom.commands.run import read_stepper, scene_and_options


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("advise", parents=[debug], help="the cheapest stepper and step that will do")
    p.add_argument("scene", metavar="SCENE.toml", help="a scene file; steps are tried around its own")
    p.add_argument("--tolerance", type=float, default=1e-3, metavar="X", help="relative error (1e-3)")
    p.add_argument("--trial", type=float, default=0.25, metavar="SHARE", help="of the duration to run (0.25)")
    p.add_argument("--steppers", metavar="A,B,C", help="those to try, as in compare")
    p.add_argument("--step", type=float, metavar="H", help="step in s, instead of the scene file's")
    p.add_argument("--duration", type=float, metavar="T", help="duration in s, instead of the scene file's")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.studies.advice import advise

    scene, options = scene_and_options(chosen)
    steppers = [read_stepper(text) for text in chosen.steppers.split(",")] if chosen.steppers else None
    advice = advise(
        scene,
        duration=options["duration"],
        step=options["step"],
        tolerance=chosen.tolerance,
        trial=chosen.trial,
        steppers=steppers,
    )
    print(advice)
    return 0 if advice.choice else 1
