"""Lemke's method with lexicographic pivots, dense.

    w - M z - d z_0 = q     a path of complementary bases from z_0 large to z_0 = 0

The inverse of the basis is kept: its rows decide ties (no cycles on degenerate problems, which piles at
rest are), and one entering column costs one product. It is made anew where the basic solution has drifted.
Ends with a solution or on a secondary ray, which proves that there is none for copositive-plus matrices
such as those of frictional contact; another covering vector is tried before a ray is reported.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.solvers.lcp import semismooth
from implicit_geom.solvers.lcp.solution import LCP, LCPSolution, certified, on_basis, sharpened

PIVOT = 1e-9  # entries of the entering column below this part of its largest are zero
ALIKE = 1e-7  # entries of the inverse, over the largest of the rows compared, that are equal
DRIFT = 1e-10  # error of the basic solution, over the size of the problem, that calls for a new inverse
CHECK = 25  # pivots between looks at the drift
NEWTON_STEPS = 10
LARGE = 300  # unknowns from which updates are done in place by BLAS
# Attempts: a number that makes the covering vector, and how close values are that leave the basis together,
# over the size of the problem. Wider ties keep large problems from cycling, and leave errors of their size.
ATTEMPTS = ((0.6180339887498949, 1e-12), (0.4142135623730951, 1e-11), (0.7320508075688772, 1e-10))
NEARLY = 1e-6  # error from which Newton's method finishes

RAY, LIMIT, SINGULAR = "secondary ray", "iteration limit", "singular basis"


def solve_by_lemke(problem: LCP, z0: np.ndarray | None, limit: int | None = None) -> LCPSolution:
    """From the basis that z0 suggests, if that is a solution; otherwise along the path."""
    n = problem.n
    if n == 0 or problem.q.min() >= 0:
        return certified(problem, np.zeros(n), 0, "")
    if z0 is not None:
        guess = on_basis(problem, z0 > np.maximum(problem.w(z0), 0.0))
        if guess is not None:
            found = certified(problem, guess, 0, "")
            if found.converged:
                return found
    limit = 50 * n + 100 if limit is None else limit
    total = 0
    for generic, tie in ATTEMPTS:
        path = LemkePath(problem, covering(n, generic), tie)
        reason = path.follow(limit - total)
        total += path.pivots
        found = path.solution(total, reason)
        if not found.converged and found.error < NEARLY:
            found = _sharper(problem, found)
        if found.converged or reason == LIMIT:
            break
    return found


def _sharper(problem: LCP, found: LCPSolution) -> LCPSolution:
    """The solution near one that rounding has spoilt."""
    newton = semismooth.solve_by_fischer_burmeister(problem, found.z / problem.scale, NEWTON_STEPS)
    if not newton.converged:
        return found
    return replace(newton, iterations=found.iterations + newton.iterations)


def covering(n: int, generic: float) -> np.ndarray:
    """Entries in no simple relation: equal ones make ties of all that is equal in a pile."""
    return 0.5 + (np.arange(1, n + 1) * generic) % 1.0


class LemkePath:
    """Bases along the path. Variables: w_i is i, z_i is n + i, z_0 is 2 n."""

    def __init__(self, problem: LCP, covering: np.ndarray, tie: float) -> None:
        n = problem.n
        self.problem, self.n = problem, n
        self.covering = covering
        self.tie = tie * problem.size
        self.basis = np.arange(n)
        self.inverse = np.eye(n, order="F") if n >= LARGE else np.eye(n)
        self.x = problem.q.copy()
        self.pivots = 0

    def follow(self, limit: int) -> str:
        """Pivots until z_0 leaves; what went wrong otherwise."""
        n, top = self.n, 2 * self.n
        ratio = self.x / self.covering
        # the lexicographic minimum: of equal rows of the identity the last is the smallest
        row = int(np.flatnonzero(ratio <= ratio.min() + self.tie)[-1])
        column, entering, fresh = -self.covering, top, True
        while True:
            if self.pivots >= limit:
                return LIMIT
            leaving = int(self.basis[row])
            self.pivot(row, column, entering)
            fresh = False
            if leaving == top:
                return ""
            if self.pivots % CHECK == 0 and self.drift() > DRIFT:
                if not self.refresh():
                    return SINGULAR
                fresh = True
            entering = leaving + n if leaving < n else leaving - n
            column = self._column(entering)
            row = self._leaving_row(column)
            if row < 0 and not fresh and self.pivots > CHECK:
                if not self.refresh():
                    return SINGULAR
                column = self._column(entering)
                row = self._leaving_row(column)
            if row < 0:
                return RAY

    def solution(self, total: int, reason: str) -> LCPSolution:
        """The basic solution, its equations solved anew where z_0 has left."""
        n = self.n
        z, basic = np.zeros(n), np.zeros(n, dtype=bool)
        chosen = (self.basis >= n) & (self.basis < 2 * n)
        members = self.basis[chosen] - n
        z[members] = np.maximum(self.x[chosen], 0.0)
        if reason:
            return certified(self.problem, z, total, reason)
        basic[members] = True
        return sharpened(self.problem, z, basic, total, "rounding")

    def _column(self, variable: int) -> np.ndarray:
        if variable < self.n:
            return self.inverse[:, variable].copy()
        return -(self.inverse @ self.problem.M[:, variable - self.n])

    def _leaving_row(self, column: np.ndarray) -> int:
        """The lexicographically smallest ratio of (x, inverse) to the column; z_0 first among equals."""
        rows = (column > PIVOT * max(1.0, abs(column).max())).nonzero()[0]
        if rows.size == 0:
            return -1
        chosen = column[rows]
        values = np.maximum(self.x[rows], 0.0)
        ratios = values / chosen
        smallest = ratios.min()
        alike = rows[values - smallest * chosen <= self.tie]
        rows = alike if alike.size else rows[ratios.argmin()][None]  # (rounding may leave none)
        if rows.size == 1:
            return int(rows[0])
        last = rows[self.basis[rows] == 2 * self.n]
        if last.size:
            return int(last[0])
        return self.smallest_row(rows, column)

    def smallest_row(self, rows: np.ndarray, column: np.ndarray) -> int:
        """Of rows with equal ratios the lexicographically smallest."""
        ratios = self.inverse[rows] / column[rows, None]
        while rows.size > 1:
            alike = ALIKE * float(abs(ratios).max())
            differs = ratios.max(axis=0) - ratios.min(axis=0) > alike
            place = int(differs.argmax())
            if not differs[place]:
                return int(rows[column[rows].argmax()])
            keep = ratios[:, place] <= ratios[:, place].min() + alike
            rows, ratios = rows[keep], ratios[keep][:, place + 1 :]
            if ratios.shape[1] == 0:
                break
        return int(rows[0])

    def pivot(self, row: int, column: np.ndarray, entering: int) -> None:
        """`entering` takes the row's place in the basis; `column` is its own, and is spent."""
        factor = self.inverse[row] / column[row]
        step = self.x[row] / column[row]
        column[row] -= 1.0
        if self.n >= LARGE:
            from scipy.linalg.blas import dger

            self.inverse = dger(-1.0, column, factor, a=self.inverse, overwrite_a=1)
        else:
            self.inverse -= column[:, None] * factor
        self.x -= step * column
        self.x[row] = step
        self.basis[row] = entering
        self.pivots += 1

    def _matrix(self) -> np.ndarray:
        n = self.n
        columns = np.zeros((n, n))
        for place, variable in enumerate(self.basis):
            if variable < n:
                columns[variable, place] = 1.0
            elif variable < 2 * n:
                columns[:, place] = -self.problem.M[:, variable - n]
            else:
                columns[:, place] = -self.covering
        return columns

    def drift(self) -> float:
        """The error of the basic solution in its own equations, over the size of the problem."""
        n = self.n
        full = np.zeros(2 * n + 1)
        full[self.basis] = self.x
        rest = full[:n] - self.problem.M @ full[n : 2 * n] - self.covering * full[2 * n] - self.problem.q
        return float(abs(rest).max()) / self.problem.size

    def refresh(self) -> bool:
        matrix = self._matrix()
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return False
        self.inverse = np.asfortranarray(inverse) if self.n >= LARGE else inverse
        self.x = inverse @ self.problem.q
        self.x += inverse @ (self.problem.q - matrix @ self.x)
        return bool(np.isfinite(self.x).all())
