"""`admm`: alternating directions on the contact law in De Saxce's form.

    min 1/2 x.W x + (q + s).x  with x = z in the friction cone,    s = mu |u_f| in the normal row

    x = (W + R + eta)^-1 (R z + eta x - y - q - s)
    z = projection of x + y / R on the cone,    y += R (x - z),    s from y = -(u + s)

The problem is convex for a given shift s; updating s in every iteration costs nothing and, where it comes to
rest, gives Coulomb's law [De Saxce and Feng 1998; Carpentier, Le Lidec, Montaut 2024]. For s = 0 it always
converges, and where no contact slips in the end it has found a solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.solvers.contact.law import contact_error, on_cones
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver
from implicit_geom.solvers.contact.systems.system import System, system_of

PENALTY = 0.1  # R over W_nn at the start
PROXIMAL = 1e-6  # eta over W_nn
BALANCE = 20  # iterations between two looks at the error and the penalty
RATIO = 10.0  # of the two residuals that changes the penalty
CHANGE = 10.0**0.5  # of the penalty, at most a power of it


@dataclass
class Alternating:
    """The iteration's state; impulses (n_c, d), scaled. `sticking` leaves out the shift."""

    problem: ContactProblem
    system: System
    x: np.ndarray
    y: np.ndarray
    penalty: float = PENALTY
    iterations: int = 0
    sticking: bool = False

    def factor(self) -> None:
        """Factors for the present penalty."""
        weight = (self.penalty + PROXIMAL) / self.problem.effective_mass
        self.weight = weight[:, None]
        self.system.factor(np.ascontiguousarray(np.eye(self.problem.dim) / weight[:, None, None]))

    def shift(self) -> np.ndarray:
        """q + s: contact velocities without impulses, with De Saxce's term in the normal row."""
        out = self.problem.q.reshape(self.x.shape).copy()
        if self.sticking:
            return out
        for rows, mu in self.problem.coefficients:
            out[:, 0] += mu * np.linalg.norm(self.y[:, rows], axis=1)
        return out

    def run(self, count: int) -> np.ndarray:
        """The projected impulses after `count` iterations; the penalty is balanced after them."""
        problem, mass = self.problem, self.problem.effective_mass[:, None]
        R, eta, discs = self.penalty / mass, PROXIMAL / mass, problem.coefficients
        z = old = on_cones(self.x + self.y / R, discs)
        for _ in range(count):
            right = R * z + eta * self.x - self.y - self.shift()
            self.x = self.system.shifted(lambda g: g / self.weight, right)
            old, z = z, on_cones(self.x + self.y / R, discs)
            self.y = self.y + R * (self.x - z)
        self.iterations += count
        primal = float(np.max(np.abs(self.x - z) / mass))
        dual = float(np.max(R * np.abs(z - old)))
        self._balance(primal, dual)
        return z

    def _balance(self, primal: float, dual: float) -> None:
        """A larger penalty where x and z differ too much, a smaller one where z still moves too much."""
        if primal > RATIO * dual or dual > RATIO * primal:
            self.penalty *= CHANGE if primal > dual else 1 / CHANGE
            self.factor()


@solver("admm")
def admm(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    iterations: int = 5000,
) -> ContactSolution:
    """Proximal ADMM with De Saxce's shift; the best impulses seen are returned.

    iterations   at most
    """
    shape = (problem.contacts, problem.dim)
    s = np.zeros(shape) if start is None else start.reshape(shape)
    if not problem.contacts:
        return solution_of(problem, s.ravel())
    state = begun(problem, s)
    best, least, history = s.ravel(), np.inf, []
    while least > 0.99 * tolerance and state.iterations < iterations:
        s = state.run(BALANCE).ravel()
        error = contact_error(problem, problem.velocity(s), s)
        history.append(error)
        if error < least:
            best, least = s, error
    found = {"iterations": state.iterations, "factorisations": state.system.factorisations}
    return solution_of(problem, best, **found, history=history)


def begun(
    problem: ContactProblem, s: np.ndarray, system: System | None = None, sticking: bool = False
) -> Alternating:
    """The iteration at impulses s, with the multipliers that belong to them."""
    u = (problem.H_ball.T @ problem.velocity(s.ravel()) + problem.w_ball).reshape(s.shape)
    for rows, mu in problem.coefficients if not sticking else ():
        u[:, 0] += mu * np.linalg.norm(u[:, rows], axis=1)
    state = Alternating(problem, system or system_of(problem), s, -u, sticking=sticking)
    state.factor()
    return state
