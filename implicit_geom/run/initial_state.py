"""Checks of the state that a run starts from: no overlap, nothing too far or too fast for gaps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from implicit_geom.classical.stepper import ClassicalStepper
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.run.make_stepper import AnyStepper
from implicit_geom.scene.limits import FAR, check_place
from implicit_geom.scene.options import SimulationOptions

OVERLAP = 1e-8  # overlap at the start, relative to the smaller body, that is refused
MOST_NUMBERS = 2e9  # of all states of a batch, in 16 GB


def check_overlap(solver: AnyStepper, state: State) -> None:
    """Refuse bodies that overlap at the start, by more than the rounding of the user's numbers.

    A stepper on facets may know other shapes than the scene does: it is its own that must not overlap.
    """
    model = solver.model
    for pair, gap in _overlaps(solver, state):
        if gap < -OVERLAP * min(model.pieces.size[piece] for piece in pair.pieces):
            a, b = sorted((pair.first, pair.second))
            raise SceneError(
                f"bodies.{model.names[b]}.position: bodies {model.names[a]!r} and {model.names[b]!r} overlap "
                f"by {-gap:.6g} m at the start; move them apart by that much"
            )


def _overlaps(solver: AnyStepper, state: State) -> Iterator[tuple[Pair, float]]:
    """Pairs that may overlap, and their gaps."""
    if isinstance(solver, ClassicalStepper):
        yield from ((solver.model.pairs[c], gap) for c, gap in solver.overlaps(state))
        return
    for i in solver.memory.broad.overlapping(state, OVERLAP):
        pair = solver.model.pairs[i]
        a, b = (solver.model.placed(state, piece) for piece in pair.pieces)
        yield pair, find_closest_points(a, b).points.gap


def check_scales(model: Model, state: State, step: float) -> None:
    """Refuse a start, or a step, in which no gap could be kept: far bodies, or motions of many sizes."""
    for i, body in enumerate(model.bodies):
        size = float(model.size[i])
        check_place(f"bodies.{body.name}.position", state.x[i], size)
        if body.fixed:
            continue
        speed = float(np.linalg.norm(state.v[i]) + np.linalg.norm(model.scene.gravity) * step)
        turned = float(np.linalg.norm(state.w[i])) * step
        if speed * step > FAR * (size if np.isfinite(size) else 1.0) or turned > FAR:
            raise SceneError(
                f"step = {step:g} s: bodies.{body.name} would move by {speed * step:.3g} m and turn by "
                f"{turned:.3g} rad in it, more than {FAR:g} times its size: take a shorter step"
            )


def check_room(scenes: int, bodies: int, options: SimulationOptions) -> None:
    """Refuse a batch whose states no memory holds, before any of it is computed."""
    numbers = scenes * bodies * 13 * options.duration / options.step
    if numbers > MOST_NUMBERS:
        raise SceneError(
            f"values: the states of {scenes} scenes take {8 * numbers / 1e9:.3g} GB, at most "
            f"{8 * MOST_NUMBERS / 1e9:g} GB are kept; take fewer rows at a time, a longer step, or use sweep"
        )
