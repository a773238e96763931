"""PATH on the problem with friction pyramids [MJ14, MLCP-PATH], where GAMSPy is installed.

`pip install 'implicit-geom[path]'`. GAMSPy brings PATH and a licence for small problems. As for the other
solvers with pyramids, the law solved is the pyramid's, and the certificate is the cone's.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers.contact.mj14.minimum import largest, merit
from implicit_geom.solvers.contact.mj14.mixed_lcp import MixedLCP
from implicit_geom.solvers.contact.mj14.pyramid_lcp import PyramidLCP
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver

NEEDS = "the solver path needs GAMSPy, which is not installed; get it with pip install 'implicit-geom[path]'"


def path_reason() -> str:
    """Why PATH cannot be used; empty where it can."""
    return "" if importlib.util.find_spec("gamspy") else NEEDS


@solver("path")
def path(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    directions: int = 4,
    turn: float | np.ndarray = 0.0,
    aligned: bool = False,
    slip: np.ndarray | None = None,
    scaled: bool = False,
) -> ContactSolution:
    """Friction pyramids, solved by PATH; options as those of `mlcp_fb_rlm`."""
    if path_reason():
        raise SceneError(path_reason())
    pyramids = PyramidLCP(
        problem, directions=directions, turn=turn, aligned=aligned, slip=slip, scaled=scaled
    )
    z, status = by_path(pyramids.lcp, pyramids.start(start), min(0.1 * tolerance, 1e-8))
    phi = pyramids.lcp.phi(z)
    info = {"residual": largest(phi), "merit": merit(phi), "status": status, "size": z.size}
    return solution_of(problem, pyramids.impulses(z), info=info)


def by_path(lcp: MixedLCP, z: np.ndarray, tolerance: float) -> tuple[np.ndarray, str]:
    """PATH's answer from the start z, and its own word for it."""
    import gamspy as gp

    m = gp.Container()
    rows: dict[str, Any] = {"free": np.arange(lcp.equalities), "positive": np.arange(lcp.equalities, z.size)}
    sets = {kind: gp.Set(m, records=which.tolist()) for kind, which in rows.items() if which.size}
    unknowns = {
        kind: gp.Variable(m, domain=[own], type=kind, records={"level": z[rows[kind]]})
        for kind, own in sets.items()
    }
    matches = {}
    for kind, own in sets.items():
        f = gp.Parameter(m, domain=[own], records=lcp.q[rows[kind]])[own]
        for other, columns in sets.items():
            if other == kind:
                columns = gp.Alias(m, alias_with=own)
            block = gp.Parameter(m, domain=[own, columns], records=lcp.M[np.ix_(rows[kind], rows[other])])
            f = f + gp.Sum(columns, block[own, columns] * unknowns[other][columns])
        equation = gp.Equation(m, domain=[own])
        zero = gp.Number(0)
        equation[own] = f >= zero if kind == "positive" else f == zero
        matches[equation] = unknowns[kind]
    model = gp.Model(m, problem="MCP", matches=matches)
    model.solve(solver="path", solver_options={"convergence_tolerance": tolerance})
    found = np.zeros(z.size)
    for kind, unknown in unknowns.items():
        found[rows[kind]] = np.atleast_1d(unknown.toDense())
    return found, str(model.status.name)
