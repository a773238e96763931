"""Bodies that overlap at the start are refused."""

from __future__ import annotations

from collections.abc import Iterator

from implicit_geom.classical.stepper import ApproximateStepper
from implicit_geom.geometry.distance import closest
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Pair, State
from implicit_geom.steppers import AnyStepper

OVERLAP = 1e-8  # overlap at the start, relative to the smaller body, that is refused


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
    if isinstance(solver, ApproximateStepper):
        yield from ((solver.model.pairs[c], gap) for c, gap in solver.overlaps(state))
        return
    for i in solver.broad.overlapping(state, OVERLAP):
        pair = solver.model.pairs[i]
        a, b = (solver.model.placed(state, piece) for piece in pair.pieces)
        yield pair, closest(a, b).points.gap
