"""`implicit-geom run`: simulate a scene file, or repeat a failed step from its file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.interface.words import shown
from implicit_geom.interface.writing import check_input_kept
from implicit_geom.process.signals import HELD, status
from implicit_geom.run.simulate import simulate
from implicit_geom.run.storage.replay import replay
from implicit_geom.run.storage.replay_file import check_output as check_record
from implicit_geom.run.storage.step_failed import StepFailed
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import read_scene
from implicit_geom.scene.switches import Stepper


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("run", parents=[debug], help="simulate a scene file and save the run")
    p.add_argument("scene", metavar="SCENE.toml", help="a scene file, or the .json file of a failed step")
    p.add_argument(
        "-o", "--output", metavar="OUT.h5", help="where to save (default: the scene's name, .h5, here)"
    )
    p.add_argument("--step", type=float, metavar="H", help="step in s, instead of the scene file's")
    p.add_argument("--duration", type=float, metavar="T", help="duration in s, instead of the scene file's")
    p.add_argument(
        "--stepper",
        metavar="NAME",
        help="stepper, instead of the scene file's; with fields after colons: stewart-trinkle:facets=1000",
    )
    p.add_argument(
        "--record",
        type=int,
        metavar="N",
        help="keep every N-th step and the last, instead of the scene file's",
    )
    p.add_argument("--plot", action="store_true", help="write a figure beside the output")
    p.add_argument("--force", action="store_true", help="overwrite outputs that are no runs of implicit-geom")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.run.storage.saved_runs import check_output, check_writable

    source = Path(chosen.scene)
    if source.suffix == ".json":
        return _replay(chosen, source)
    output = Path(chosen.output or f"{source.stem}.h5")
    scene, options = read_scene(source)
    options = _options(chosen, options, source)
    check_output(output, force=chosen.force)
    figure, record = output.with_suffix(".png"), output.with_suffix(".failed.json")
    check_record(record, force=chosen.force)
    if chosen.plot:
        check_writable(figure)
    check_input_kept(source, output, record, *([figure] if chosen.plot else []))
    try:
        run = simulate(scene, **options)
    except StepFailed as failure:
        with HELD:
            _keep(failure, output, record, chosen.force)
        print(failure.run.summary())
        print(
            f"implicit-geom: {failure}; the run so far is in {output}, the step in {record}", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt as interrupt:
        partial: Trajectory | None = getattr(interrupt, "run", None)
        if partial is None:
            raise
        with HELD:
            partial.save(output, force=chosen.force)
            print(
                f"implicit-geom: interrupted at t = {partial.time[-1]:g} s; the run so far is in {output}",
                file=sys.stderr,
            )
        return status(interrupt)
    print(run.summary())
    with HELD:
        run.save(output, force=chosen.force)
    print(f"saved       {output}")
    if chosen.plot:
        from implicit_geom.studies.figures import overview

        overview(run).savefig(figure, dpi=150)
        print(f"figure      {figure}")
    return 0


def _keep(failure: StepFailed, output: Path, record: Path, force: bool) -> None:
    """Save the run so far and the failed step; where the disk takes neither, the failure is still told."""
    try:
        failure.run.save(output, force=force)
        failure.write(record, force=force)
    except SimulationError as error:
        raise SimulationError(f"{failure}; {error}") from None


def _options(chosen: argparse.Namespace, options: dict[str, Any], source: Path) -> dict[str, Any]:
    """The file's options under the command line's; a failed step is always raised, to be written down."""
    for name in ("step", "duration", "record"):
        if getattr(chosen, name, None) is not None:
            options[name] = getattr(chosen, name)
    if getattr(chosen, "stepper", None) is not None:
        options["stepper"] = read_stepper(chosen.stepper)
    for name in ("duration", "step"):
        if name not in options:
            raise SceneError(f"{source}: simulation.{name} is missing: add it, or give --{name}")
    SimulationOptions(**options)
    return {**options, "on_failure": "raise"}


def scene_and_options(chosen: argparse.Namespace) -> tuple[Scene, dict[str, Any]]:
    """The scene of a file and how to simulate it, without the stepper, for commands that choose it."""
    source = Path(chosen.scene)
    scene, options = read_scene(source)
    options = _options(chosen, options, source)
    kept = ("duration", "step", "tolerance", "friction_residual")
    return scene, {name: options[name] for name in kept if name in options}


def _replay(chosen: argparse.Namespace, source: Path) -> int:
    for name in ("output", "step", "duration", "stepper", "record"):
        if getattr(chosen, name) is not None:
            raise SceneError(
                f"--{name}: the file of a failed step is repeated as it is; leave the option out"
            )
    attempt = replay(source)
    iterations = sum(s.iterations for s in attempt.solves)
    print(f"the step now succeeds: {len(attempt.solves)} solves, {iterations} iterations")
    return 0


def read_stepper(text: str) -> Stepper:
    """NAME:field=value:... as a stepper."""
    name, *fields = text.strip().split(":")
    changes: dict[str, Any] = {}
    for field in fields:
        key, equals, value = field.partition("=")
        if not equals:
            raise SceneError(f"stepper {shown(text)}: {shown(field)} must be field=value")
        words = {"true": True, "false": False}
        whole = value.isascii() and value.isdigit() and len(value) < 10
        changes[key] = int(value) if whole else words.get(value, value)
    return Stepper.named(name, **changes)
