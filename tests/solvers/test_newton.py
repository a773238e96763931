"""The Newton core on small mixed complementarity problems with known answers: problems times solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from implicit_geom.solvers.newton import (
    NewtonOptions,
    NewtonResult,
    follow_path,
    levenberg_marquardt,
    solve_by_newton,
)

OPTIONS = NewtonOptions(damped_steps=60)


@dataclass
class Natural:
    """z - max(z - w(z), 0) = 0 in the `signed` rows, w(z) = 0 in the others; smoothed for eps > 0."""

    w: Callable[[np.ndarray], np.ndarray]
    dw: Callable[[np.ndarray], np.ndarray]
    signed: np.ndarray
    shift: np.ndarray = field(init=False)
    tolerance: np.ndarray = field(init=False)
    proximal: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.shift = np.full(self.signed.size, 1e-12)
        self.tolerance = np.full(self.signed.size, 1e-11)
        self.proximal = np.ones(self.signed.size)

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        return self.linearise(z, eps)[0]

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        w, dw = self.w(z), self.dw(z)
        y = z - w
        if eps > 0:
            root = np.sqrt(y**2 + 4 * eps**2)
            plus, slope = (y + root) / 2, (1 + y / root) / 2
        else:
            plus, slope = np.maximum(y, 0), (y > 0).astype(float)
        eye = np.eye(z.size)
        F = np.where(self.signed, z - plus, w)
        J = np.where(self.signed[:, None], eye - slope[:, None] * (eye - dw), dw)
        return F, J

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        return dz

    def certified(self, z: np.ndarray) -> bool:
        return True


@dataclass(frozen=True)
class Problem:
    system: Natural
    start: np.ndarray
    answers: list[np.ndarray]  # empty: any solution will do


def linear(M: list, q: list, start: list, answers: list, free: tuple[int, ...] = ()) -> Problem:
    A, b = np.array(M, float), np.array(q, float)
    signed = np.array([i not in free for i in range(b.size)])
    system = Natural(lambda z: A @ z + b, lambda z: A, signed)
    return Problem(system, np.array(start, float), [np.array(a, float) for a in answers])


def kojima_shindo() -> Problem:
    """[Kojima, Shindo 1986]: two solutions, one of them degenerate."""

    def w(z: np.ndarray) -> np.ndarray:
        a, b, c, d = z
        return np.array(
            [
                3 * a**2 + 2 * a * b + 2 * b**2 + c + 3 * d - 6,
                2 * a**2 + a + b**2 + 10 * c + 2 * d - 2,
                3 * a**2 + a * b + 2 * b**2 + 2 * c + 9 * d - 9,
                a**2 + 3 * b**2 + 2 * c + 3 * d - 3,
            ]
        )

    def dw(z: np.ndarray) -> np.ndarray:
        a, b, _, _ = z
        return np.array(
            [
                [6 * a + 2 * b, 2 * a + 4 * b, 1, 3],
                [4 * a + 1, 2 * b, 10, 2],
                [6 * a + b, a + 4 * b, 2, 9],
                [2 * a, 6 * b, 2, 3],
            ]
        )

    answers = [np.array([np.sqrt(6) / 2, 0, 0, 0.5]), np.array([1.0, 0, 3, 0])]
    return Problem(Natural(w, dw, np.full(4, True)), np.array([1.0, 0.1, 0.1, 1.0]), answers)


def murty(n: int) -> Problem:
    """[Murty 1978]: upper triangle of twos; the answer is the last unit vector."""
    M = np.eye(n) + 2 * np.triu(np.ones((n, n)), 1)
    return linear(M.tolist(), [-1] * n, [1] * n, [np.eye(n)[-1]])


# [Ben Gharbia, Gilbert 2012]: a P-matrix on which full Newton steps on the natural map cycle
CYCLE = [[1, 0, 2], [2, 1, 0], [0, 2, 1]]
PROBLEMS: dict[str, Callable[[], Problem]] = {
    "both active": lambda: linear([[2, 1], [1, 2]], [-1, -1], [0, 0], [[1 / 3, 1 / 3]]),
    "one active": lambda: linear([[2, 1], [1, 2]], [-1, 1], [5, 5], [[0.5, 0]]),
    "Murty": lambda: murty(6),
    "Kojima-Shindo": kojima_shindo,
    "singular but consistent": lambda: linear([[1, 1], [1, 1]], [-1, -1], [2, 3], []),
    # the point of the simplex nearest to (0.9, 0.4, -1): free multiplier last
    "mixed": lambda: linear(
        [[1, 0, 0, -1], [0, 1, 0, -1], [0, 0, 1, -1], [1, 1, 1, 0]],
        [-0.9, -0.4, 1, -1],
        [0, 0, 0, 0],
        [[0.75, 0.25, 0, -0.15]],
        free=(3,),
    ),
    "cycling": lambda: linear(CYCLE, [-1, -1, -1], [1, 0, 0], [[1 / 3] * 3]),
}
SOLVERS: dict[str, Callable[[Natural, np.ndarray], NewtonResult]] = {
    "newton": lambda system, z: solve_by_newton(system, z, OPTIONS),
    "levenberg-marquardt": lambda system, z: levenberg_marquardt(system, z, OPTIONS, eps=0.0, history=[]),
    "path": lambda system, z: follow_path(system, z, OPTIONS),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_known_answers(name: str, solver: str) -> None:
    """Every solver finds a known answer of every problem, and says that it has."""
    problem = PROBLEMS[name]()
    found = SOLVERS[solver](problem.system, problem.start)
    assert found.converged
    F = problem.system.residual(found.z, 0.0)
    assert np.abs(F).max() <= 1e-11
    w = problem.system.w(found.z)
    signed = problem.system.signed
    assert np.all(found.z[signed] > -1e-10)
    assert np.all(w[signed] > -1e-10)
    assert abs(found.z[signed] @ w[signed]) < 1e-10
    if problem.answers:
        assert min(np.abs(found.z - a).max() for a in problem.answers) < 1e-6


def test_full_steps_alone_cycle() -> None:
    """The cycling problem is one: without damping the core says that it has not converged."""
    problem = PROBLEMS["cycling"]()
    found = solve_by_newton(problem.system, problem.start, OPTIONS, damped=False)
    assert not found.converged
    assert found.iterations == OPTIONS.full_steps


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("M", "q"), [([[-1]], [-1]), ([[0, 1], [-1, 0]], [-1, -1]), ([[1, -1], [-1, 1]], [-1, -1])]
)
def test_no_solution_is_reported(M: list, q: list, solver: str) -> None:
    """Negative control: a problem without solution is reported as not converged by every solver."""
    problem = linear(M, q, [1.0] * len(q), [])
    found = SOLVERS[solver](problem.system, problem.start)
    assert not found.converged
    assert min(found.history) > 1


def test_start_at_the_answer_takes_no_iteration() -> None:
    """A start value that solves the problem is returned untouched."""
    problem = PROBLEMS["one active"]()
    found = solve_by_newton(problem.system, problem.answers[0], OPTIONS)
    assert found.converged
    assert found.iterations == 0
    np.testing.assert_array_equal(found.z, problem.answers[0])


@pytest.mark.parametrize("name", ["Kojima-Shindo", "Murty"])
def test_convergence_is_fast_near_a_regular_answer(name: str) -> None:
    """From 1e-3 away a regular answer is found to 1e-11 in at most four iterations."""
    problem = PROBLEMS[name]()
    found = solve_by_newton(problem.system, problem.answers[0] + 1e-3, OPTIONS)
    assert found.converged
    assert found.iterations <= 4


def test_nan_is_no_convergence() -> None:
    """Rows that are not numbers end the iteration without a claim."""
    system = Natural(lambda z: z + np.nan, lambda z: np.eye(z.size), np.full(2, False))
    assert not solve_by_newton(system, np.zeros(2), OPTIONS).converged
