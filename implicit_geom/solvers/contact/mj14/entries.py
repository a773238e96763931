"""MLCP-FB-RLM, MLCP-FB-PLM, MNCP-RLM, MNCP-PLM [MJ14], entered by name.

The two MLCP solvers solve another law: friction within a pyramid. Their solutions are certified by the exact
cone like all others, so that they are in general NOT converged, by as much as the pyramid differs from the
cone; in the plane, and where a corner lies along the friction, they agree. How well a solver has done its own
work is in `info`:

    residual   the largest |phi| of its equations; velocities and impulses, m/s where `scaled`
    merit      psi = |phi|^2 / 2
    status     solved, rounding, local minimum, limit (see `minimum.Minimum`), too large
    size       of its system: n_b + n_c (k + 2), or n_b + 3 n_c

Matrices are dense: these are solvers for few contacts. A system of more than MOST unknowns is not tried, and
what comes back is the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from implicit_geom.solvers.contact.mj14.implicit_ncp import ImplicitNCP
from implicit_geom.solvers.contact.mj14.minimum import EPSILON, Minimum
from implicit_geom.solvers.contact.mj14.projected import projected
from implicit_geom.solvers.contact.mj14.pyramid_lcp import PyramidLCP, unknowns
from implicit_geom.solvers.contact.mj14.regular import regular
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver

Minimise = Callable[..., Minimum]
OWN = 0.1  # of the tolerance asked for: a search that gets no further is at its end within it
MOST = 4000  # unknowns: a dense matrix of 128 MB


def _by_pyramids(
    minimise: Minimise,
    problem: ContactProblem,
    tolerance: float,
    start: np.ndarray | None,
    limit: int,
    epsilon: float,
    **options: Any,
) -> ContactSolution:
    size = unknowns(problem, options["directions"])
    if size > MOST:
        return _too_large(problem, start, size)
    pyramids = PyramidLCP(problem, **options)
    found = minimise(
        pyramids.lcp, pyramids.start(start), tolerance=OWN * tolerance, limit=limit, epsilon=epsilon
    )
    return _solution(problem, pyramids.impulses(found.x), found)


def _by_cones(
    minimise: Minimise,
    problem: ContactProblem,
    tolerance: float,
    start: np.ndarray | None,
    limit: int,
    epsilon: float,
    scaled: bool,
) -> ContactSolution:
    size = problem.G.shape[1] + problem.contacts * problem.dim
    if size > MOST:
        return _too_large(problem, start, size)
    ncp = ImplicitNCP(problem, scaled=scaled)
    found = minimise(ncp, ncp.start(start), tolerance=OWN * tolerance, limit=limit, epsilon=epsilon)
    return _solution(problem, ncp.impulses(found.x), found)


def _too_large(problem: ContactProblem, start: np.ndarray | None, size: int) -> ContactSolution:
    s = np.zeros(problem.H.shape[1]) if start is None else start
    info = {"residual": np.nan, "merit": np.nan, "status": "too large", "size": size}
    return solution_of(problem, s, info=info)


def _solution(problem: ContactProblem, s: np.ndarray, found: Minimum) -> ContactSolution:
    info = {"residual": found.residual, "merit": found.psi, "status": found.status, "size": found.x.size}
    return solution_of(
        problem,
        s,
        iterations=found.iterations,
        factorisations=found.factorisations,
        history=found.history,
        info=info,
    )


@solver("mlcp-fb-rlm")
def mlcp_fb_rlm(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    limit: int = 100,
    epsilon: float = EPSILON,
    directions: int = 4,
    turn: float | np.ndarray = 0.0,
    aligned: bool = False,
    slip: np.ndarray | None = None,
    scaled: bool = False,
) -> ContactSolution:
    """Friction pyramids, Fischer-Burmeister equations, RLM; the pyramid's law, not the cone's (see above).

    limit        of iterations
    epsilon      psi at which it stops
    directions   corners of a pyramid, the first one `turn` rad from t, or `aligned`: against the slip
    slip         (n_c, d - 1) m/s, at the start of the step; without impulses, where it is not given
    scaled       unknowns are impulses over effective masses; MJ14 takes them as they are
    """
    pyramid = {"directions": directions, "turn": turn, "aligned": aligned, "slip": slip, "scaled": scaled}
    return _by_pyramids(regular, problem, tolerance, start, limit, epsilon, **pyramid)


@solver("mlcp-fb-plm")
def mlcp_fb_plm(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    limit: int = 100,
    epsilon: float = EPSILON,
    directions: int = 4,
    turn: float | np.ndarray = 0.0,
    aligned: bool = False,
    slip: np.ndarray | None = None,
    scaled: bool = False,
) -> ContactSolution:
    """Friction pyramids, Fischer-Burmeister equations, PLM; options as those of `mlcp_fb_rlm`."""
    pyramid = {"directions": directions, "turn": turn, "aligned": aligned, "slip": slip, "scaled": scaled}
    return _by_pyramids(projected, problem, tolerance, start, limit, epsilon, **pyramid)


@solver("mncp-rlm")
def mncp_rlm(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    limit: int = 100,
    epsilon: float = EPSILON,
    scaled: bool = False,
) -> ContactSolution:
    """The exact cone in z = v - F, RLM; options as those of `mlcp_fb_rlm`."""
    return _by_cones(regular, problem, tolerance, start, limit, epsilon, scaled)


@solver("mncp-plm")
def mncp_plm(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    limit: int = 100,
    epsilon: float = EPSILON,
    scaled: bool = False,
) -> ContactSolution:
    """The exact cone in z = v - F, PLM; options as those of `mlcp_fb_rlm`."""
    return _by_cones(projected, problem, tolerance, start, limit, epsilon, scaled)
