"""`implicit-geom demo`: a rolling disc [C07, example 1], as a disc and as inscribed polygons."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.run.simulate import simulate
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.scene import Scene

SIDES = (8, 16, 32, 64)
DURATION, STEP = 10.0, 0.01
STEPPER = "implicit-euler"  # the step of the paper


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("demo", parents=[debug], help="a rolling disc: implicit against polygons")
    p.add_argument(
        "-o", "--output", default="demo.png", metavar="PNG", help="the figure (default: demo.png here)"
    )
    p.set_defaults(main=main)


def rolling(shape: shapes.Shape) -> Scene:
    """A disc of 1 m and 1 kg that rolls to the left at 3 m/s; a polygon is given the disc's inertia."""
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    inertia = shapes.disc(1.0).inertia(1.0)
    scene.add("disc", shape, mass=1.0, inertia=inertia, position=(0, 1), velocity=(-3, 0), angular_velocity=3)
    scene.friction(mu=0.4)
    return scene


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.run.storage.saved_runs import check_writable

    output = Path(chosen.output)
    check_writable(output)
    show(output)
    return 0


def show(output: Path, sides: tuple[int, ...] = SIDES, duration: float = DURATION) -> None:
    """Roll the disc and its polygons; a table to standard output and a figure."""
    bodies: dict[str, shapes.Shape] = {"implicit disc": shapes.disc(1.0)}
    bodies |= {f"{n}-gon": shapes.disc(1.0).faceted(n) for n in sides}
    print(f"A disc rolling at 3 m/s for {duration:g} s, step {STEP:g} s; the exact answer keeps its energy.")
    print(f"{'body':15}{'energy lost':>14}{'travelled m':>14}{'speed m/s':>12}{'wall time s':>13}")
    runs: dict[str, Trajectory] = {}
    for name, shape in bodies.items():
        run = runs[name] = simulate(rolling(shape), duration=duration, step=STEP, stepper=STEPPER)
        lost = 1 - run.kinetic_energy[-1] / run.kinetic_energy[0] + 0.0
        body = run["disc"]
        travelled = body.position[0, 0] - body.position[-1, 0]
        speed = np.linalg.norm(body.velocity[-1])
        wall_time = run.steps["wall_time"].sum()
        lost_text = f"{100 * lost:.1f} %" if lost > 1e-3 else f"{max(lost, 0.0):.0e}"
        print(f"{name:15}{lost_text:>14}{travelled:14.4f}{speed:12.4f}{wall_time:13.2f}")
    _figure(runs).savefig(output, dpi=150)
    print(f"figure: {output}")


def _figure(runs: dict[str, Trajectory]) -> Any:
    from implicit_geom.studies.figures import blank

    figure, (left, right) = blank(1, 2, (10, 4))
    for name, run in runs.items():
        width = 2.5 if name.startswith("implicit") else 1.2
        left.plot(run.time, run.kinetic_energy / run.kinetic_energy[0], label=name, linewidth=width)
        right.plot(run.time, -run["disc"].position[:, 0], label=name, linewidth=width)
    left.set(xlabel="time, s", ylabel="kinetic energy / its start")
    right.set(xlabel="time, s", ylabel="distance travelled, m")
    right.legend()
    return figure
