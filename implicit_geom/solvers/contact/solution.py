"""`ContactSolution`: velocities and impulses that certify themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.process.lazy import cached_property
from implicit_geom.solvers.contact.law import residuals
from implicit_geom.solvers.contact.problem import FILES, ContactProblem


@dataclass
class ContactSolution:
    """What a solver found; whether it is a solution is computed from the problem, not claimed.

    velocity         (n,) v, m/s and rad/s
    impulse          (d n_c,) p, the normal first in each contact's rows, N s
    multiplier       (m,) of the bilateral rows
    solver           its name
    tolerance        m/s, that was asked for
    iterations       of the solver's own kind
    factorisations   of matrices of the size of the problem
    wall_time        s
    history          the error by iteration, where the solver keeps it
    info             what the solver tells of itself

    >>> problem = ContactProblem(M=np.eye(3), H=np.eye(3), v_free=(-1, 0, 0), mu=[0.3])
    >>> guess = ContactSolution(problem, np.zeros(3), np.array([1.0, 0, 0]), np.zeros(0))
    >>> guess.converged, guess.residuals["signorini"]
    (True, 0.0)
    >>> problem.write("p.hdf5", solution=guess)
    >>> ContactSolution.read("p.hdf5").impulse
    array([1., 0., 0.])
    """

    problem: ContactProblem
    velocity: np.ndarray
    impulse: np.ndarray
    multiplier: np.ndarray
    solver: str = ""
    tolerance: float = 1e-8
    iterations: int = 0
    factorisations: int = 0
    wall_time: float = 0.0
    history: list[float] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Any) -> ContactSolution:
        """The solution in a file of a contact problem; its `problem` is the file's.

        path   of the file

        SceneError where the file holds none.
        """
        found = FILES["solutions"](path)[1]
        if found is None:
            raise SceneError(f"{path}: /solution is missing: the file holds a problem without one")
        return found

    @classmethod
    def read_guesses(cls, path: Any) -> list[ContactSolution]:
        """The guesses in a file of a contact problem; each may be the `start` of `solve_contact`.

        path   of the file
        """
        return FILES["solutions"](path)[2]

    @cached_property
    def contact_velocity(self) -> np.ndarray:
        """(d n_c,) u = H^T v + w, m/s."""
        return self.problem.contact_velocity(self.velocity)

    @cached_property
    def residuals(self) -> dict[str, float]:
        """What is left of each law by name, m/s; see `law.residuals`."""
        with np.errstate(all="ignore"):
            return residuals(self.problem, self.velocity, self.impulse, self.multiplier)

    @property
    def error(self) -> float:
        """The largest residual, m/s; inf where a number is not finite."""
        worst = float(np.max(list(self.residuals.values())))  # NaN if one of them is, unlike max()
        return worst if np.isfinite(worst) else np.inf

    @property
    def converged(self) -> bool:
        """Whether every residual is within the tolerance."""
        return self.error <= self.tolerance

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        return (
            f"<ContactSolution by {self.solver or '?'}: {state}, error {self.error:.2g} m/s, "
            f"{self.iterations} iterations, {self.factorisations} factorisations>"
        )


def solution_of(problem: ContactProblem, s: np.ndarray, **what: Any) -> ContactSolution:
    """The solution with the scaled impulses s: the rest follows from the momentum balance."""
    p = problem.scaling * s
    v = problem.velocity(s)
    if problem.G.shape[1]:
        f = problem.M @ (v - problem.v_free) - problem.H @ p
        multiplier = np.linalg.lstsq(problem.G.toarray(), f, rcond=None)[0]
    else:
        multiplier = np.zeros(0)
    return ContactSolution(problem, v, p, multiplier, **what)
