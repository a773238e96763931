"""`implicit-geom certify`: a saved run checked without the solver's code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("certify", parents=[debug], help="check a saved run without the solver's code")
    p.add_argument("run", metavar="RUN.h5", type=Path, help="a run, as `run -o` saves it")
    p.add_argument(
        "--scene", metavar="SCENE.toml", help="a scene file to check it against, instead of its own"
    )
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.run.trajectory import Trajectory
    from implicit_geom.scene.scene_file import read_scene

    scene = read_scene(chosen.scene)[0] if chosen.scene else None
    certificate = Trajectory.load(chosen.run).certify(scene)
    print(certificate)
    return 0 if certificate.ok else 1
