"""Options of the solver `t10`: each ingredient of the paper with a switch, and what the paper leaves open."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from implicit_geom.interface.choices import choice
from implicit_geom.interface.errors import SceneError

RECOVERIES = ("restart", "sweep", "scale", "proximal")
STARTS = ("stick", "free", "zero", "swept")


@dataclass(frozen=True)
class T10Options:
    """How `t10` minimises |r(x)|^2 / 2.

    start               where no impulses are given: `stick`, x = v - A^+ (v - v0) with v = (b, 0, 0)
                        [T10, III-F]; `free`, x = v0; `zero`, x = (b, 0, 0); `swept`, after projected steps
    mixed_jacobian      (26) on active edges; otherwise the Jacobian of one side
    edge_aware          (27): the search stops at edges; otherwise a cubic that backtracks
    tangent_bases       (28), (29): steps keep to active edges
    cone_projection     x_N and x_C are projected on the cones of active edges
    apex_sticks         a contact without impulse and velocity is first tried as sticking
    damping             lambda adapts; otherwise it is zero
    dogleg              x : x_C : x_N is searched; otherwise x : x_N alone
    scaled              x is scaled by contact so that A has a unit diagonal, since it mixes N s and m/s
    corrections         at most so many chord steps x_N <- x_N - H^-1 J^T r(x_N) with the factors of H at hand
    recovery            at local minima, one after the other: `restart` from x = v0, `sweep`, from the start
                        `swept`, `scale`, D r = 0 with D from the row sums of A [T10, V-A], `proximal` steps
    iterations          at most, of all attempts together
    first               at most, of an attempt that another may follow
    patience            the same ends where |r| has not been halved by so many iterations; 0: it does not
    accepted            share of the predicted decrease at which x_N is accepted
    lambda_start        over the mean diagonal of J^T J
    lambda_factor       lambda grows and falls by it
    lambda_least        a smaller lambda is zero, over the mean diagonal

    Deviation: chord steps, sweeps and proximal steps are not T10's; `AS_PRINTED` is without them.
    """

    start: str = "stick"
    mixed_jacobian: bool = True
    edge_aware: bool = True
    tangent_bases: bool = True
    cone_projection: bool = True
    apex_sticks: bool = True
    damping: bool = True
    dogleg: bool = True
    scaled: bool = True
    corrections: int = 10
    recovery: tuple[str, ...] = ("sweep", "proximal")
    iterations: int = 500
    first: int = 25
    patience: int = 3
    accepted: float = 0.5
    lambda_start: float = 1e-6
    lambda_factor: float = 10.0
    lambda_least: float = 1e-12

    def __post_init__(self) -> None:
        choice("start", self.start, STARTS)
        for way in self.recovery:
            choice("recovery", way, RECOVERIES)
        if (
            min(self.iterations, self.first, self.corrections) < 0
            or not 0 <= self.accepted < 1
            or self.lambda_factor <= 1
        ):
            raise SceneError("counts >= 0, 0 <= accepted < 1 and lambda_factor > 1 are needed")
        if self.lambda_start < 0 or self.lambda_least < 0:
            raise SceneError("lambda_start and lambda_least must not be negative")


AS_PRINTED = T10Options(scaled=False, corrections=0, recovery=(), iterations=100)


def options_from(given: dict[str, Any]) -> T10Options:
    """Options by name; an unknown one is an error that names the nearest."""
    for name in given:
        choice("option of t10", name, tuple(field.name for field in fields(T10Options)))
    return T10Options(**given)
