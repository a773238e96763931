"""`pssn`: proximal points of the contact law, each found by a semi-smooth Newton method on velocities.

    P = Proj(pb - rho u(v)),  M (v - v_free) = H P,  pb <- P,  rho = c (m + p_n / V)

Large c needs few proximal points and hard Newton steps, small c the reverse: c grows while Newton's method is
quick and shrinks where it fails. Over-relaxed Gauss-Seidel sweeps give the first impulses, plain ones others
after a failure at small c (at large c they are slower than the proximal points, and gain nothing). Where the
budget is spent, ADMM without De Saxce's shift tries whether all contacts may stick (the friction of a pile at
rest is far from unique, and the points then wander among slips that are none). With the shift it gives other
impulses to start from, then many sweeps do, then the best that was seen. What a budget leaves close to a
solution is finished by points without sweeps.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from implicit_geom.process.lazy import cached_property
from implicit_geom.solvers.contact.admm import BALANCE, begun
from implicit_geom.solvers.contact.cadoux_acary import cadoux_acary
from implicit_geom.solvers.contact.law import on_cones
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.pssn.newton import Newton, newton_of
from implicit_geom.solvers.contact.pssn.points import proximal_points
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver
from implicit_geom.solvers.contact.sweeps.sweep import Sweeps
from implicit_geom.solvers.contact.systems.system import System, system_of

FIRST = 120  # sweeps before any factorisation, at least
PREPARED = 1.5e5  # multiplications of sweeps that take as long as making the system does
WORTH = 20  # factorisations that more sweeps may cost before them, in bodies so many that these are slow
SLOWER = 5.0  # time of a multiplication in a sweep over one in a factorisation
BUDGET = 600  # factorisations before a fallback
QUICK, EASY = 2, 7  # Newton steps after which c grows by 4, by 2
LARGEST = 1e9  # c
SHRINK = 0.4  # of c after a failure
HOLD, LONGEST = 4, 16  # proximal points without growth after a failure, one more each time
SWEPT = 100.0  # c up to which sweeps follow a failure
SWEEPS, MOST = 50.0, 2000.0  # how many, half as many more each time
STICKING = 40_000  # iterations without slip, at most
WORTHWHILE = 0.7  # of the error, that 1,000 of them may leave
ADMM, LONG = 1000, 20_000  # iterations of the fallback, and of the last one, from nothing
LAST = 1000  # sweeps of the fallback
PATIENCE = 5  # budgets of the last try
FRESH, KNOWN = 3.0, 10.0  # c of proximal points alone, from nothing and from a start
NEAR = 1000.0  # of the tolerance: from there points without sweeps go on, under loads of 1e5 m V too
ENOUGH = 0.99  # of the tolerance


class Search:
    """What a search and its fallbacks share; impulses in the axes of the sweeps.

    best, error   the best impulses seen, and their largest residual
    last, v       the impulses seen last, and their velocities by body
    """

    def __init__(self, problem: ContactProblem, s: np.ndarray, tolerance: float) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.sweeps = Sweeps(problem)
        self.best, self.error = self.sweeps.to_axes(s), np.inf
        self.outer, self.history = 0, list[float]()
        self.last: np.ndarray | None = None

    @cached_property
    def system(self) -> System:
        """Made when a factorisation is needed."""
        return system_of(self.problem, self.sweeps.turn)

    @cached_property
    def speed(self) -> float:
        """Root mean square of the contact velocities without impulses, m/s."""
        q = self.problem.q.reshape(-1, self.problem.dim)[:, :3]
        return max(float(np.sqrt(np.mean(q**2))), 1e-12)

    @cached_property
    def newton(self) -> Newton:
        return newton_of(self.system)

    def seen(self, s: np.ndarray) -> bool:
        """Note impulses; whether they are a solution."""
        if s is not self.last:
            self._note(s, *self.sweeps.certify(s))
        return self.history[-1] <= ENOUGH * self.tolerance

    def _note(self, s: np.ndarray, error: float, v: np.ndarray) -> None:
        self.last, self.v = s, v
        self.history.append(error)
        if error < self.error:
            self.best, self.error = s, error

    def settled(self, s: np.ndarray, count: int) -> np.ndarray:
        """Impulses after over-relaxed sweeps, fewer where they are a solution."""
        v = self.v.copy() if s is self.last else self.sweeps.velocities(s)
        s, error, _ = self.sweeps.settle(s, v, count, ENOUGH * self.tolerance)
        self._note(s, error, v)
        return s

    def swept(self, s: np.ndarray, count: int) -> np.ndarray:
        """Impulses after sweeps."""
        v = self.v.copy() if s is self.last else self.sweeps.velocities(s)
        return self.sweeps.run(s, v, count)

    def weights(self, s: np.ndarray) -> np.ndarray:
        """(d n_c,) rho for c = 1: m + s_n / V, V the mean speed without impulses; of moments times r^2.

        The load is there for contacts of light bodies that carry heavy ones: from m alone they would take as
        many proximal points as the load is larger than m V.
        """
        problem, d = self.problem, self.problem.dim
        out = np.empty((problem.contacts, d))
        out[:] = (problem.effective_mass + s[::d] / self.speed)[:, None]
        if d == 5:
            out[:, 3:] *= self.sweeps.radius[:, 1:] ** 2
        return out.ravel()

    def proximal(self, pb: np.ndarray, c: float, budget: int) -> bool:
        """Proximal points from pb, which was seen last, until they are a solution or the budget is spent."""
        hold, block, sweeps = HOLD, 0, SWEEPS
        while budget > 0:
            self.outer += 1
            found = self.newton(self.v, pb, c * self.weights(pb), self.tolerance, c)
            budget -= max(found.steps, 1)  # (none is needed where impulses move nothing)
            if found.solved:
                pb = found.P
                if self.seen(pb):
                    return True
                if block:
                    block -= 1
                elif found.steps <= EASY:
                    c = min(c * (4 if found.steps <= QUICK else 2), LARGEST)
                continue
            if c < SWEPT:
                pb = self.swept(pb, int(sweeps))
                sweeps = min(1.5 * sweeps, MOST)
                if self.seen(pb):
                    return True
            c, block, hold = SHRINK * c, hold, min(LONGEST, hold + 1)
        return False

    def finished(self, budget: int) -> bool:
        """Whether points without sweeps get from impulses that are close to ones that are a solution."""
        if self.error > NEAR * self.tolerance:
            return False
        return self.seen(self.best) or proximal_points(self, self.best, KNOWN, budget)

    def sticking(self) -> Iterator[np.ndarray]:
        """Impulses that come closer to those without any slip, as long as their error falls."""
        zero = np.zeros((self.problem.contacts, self.problem.dim))
        alternating, before = begun(self.problem, zero, self.system, sticking=True), np.inf
        for k in range(1, STICKING // BALANCE + 1):
            yield self.sweeps.to_axes(alternating.run(BALANCE))
            if k * BALANCE % ADMM == 0:
                if self.history[-1] > WORTHWHILE * before:
                    return
                before = self.history[-1]

    def starts(self, s: np.ndarray) -> Iterator[tuple[str, np.ndarray, float, int]]:
        """Impulses by the name of what gave them, c of proximal points from there, and how many budgets.

        Where there are none the impulses are only looked at.
        """
        s = self.settled(s, int(max(FIRST, PREPARED / self.sweeps.work)))
        yield "first sweeps", s, 1.0, 0
        worth = self.system.work / (SLOWER * self.sweeps.work)  # sweeps that take as long as a factorisation
        more, count = WORTH * worth, 200
        while more > count:
            s = self.settled(s, count)
            yield "first sweeps", s, 1.0, 0
            more, count = more - count, min(2 * count, 2000)
        yield "proximal", s, 1.0, 1
        for s in self.sticking():
            yield "sticking", s, 1.0, 0
        shape = self.problem.contacts, self.problem.dim
        alternating = begun(self.problem, self.sweeps.from_axes(self.best).reshape(shape), self.system)
        for _ in range(ADMM // BALANCE):
            s = self.sweeps.to_axes(alternating.run(BALANCE))
            yield "admm", s, 1.0, 0
        yield "admm", s, 10.0, 1
        s = on_cones(self.best.reshape(shape), self.problem.coefficients).ravel()
        yield "sweeps", self.swept(s, LAST), 1.0, 1
        yield "best", self.best, 10.0, PATIENCE
        alternating = begun(self.problem, np.zeros(shape), self.system)
        for _ in range(LONG // BALANCE):
            yield "admm", self.sweeps.to_axes(alternating.run(BALANCE)), 1.0, 0
        if self.problem.dim < 5:
            found = cadoux_acary(self.problem, tolerance=self.tolerance)
            s = self.sweeps.to_axes(self.problem.ball_impulses(found.impulse))
            yield "cadoux-acary", s, KNOWN, 1


@solver("default")
@solver("pssn")
def pssn(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    budget: int = BUDGET,
    sweeps: bool = True,
) -> ContactSolution:
    """Proximal semi-smooth Newton with Gauss-Seidel; the best impulses seen are returned.

    budget   factorisations before a fallback
    sweeps   False: proximal points alone, from the start and without fallbacks; quicker for pressed piles

    `info["by"]` says what was tried last: `nothing`, where no contact closes; `first sweeps`, after which
    nothing was factorised; `proximal`; the fallbacks `sticking` (ADMM without slip), `admm`, `sweeps` and
    `best`, which is proximal points again from the best impulses seen; `points`, without sweeps; ADMM again,
    for long and from nothing; and `cadoux-acary`.
    """
    s = np.zeros(problem.contacts * problem.dim) if start is None else start
    if not problem.contacts or (start is None and (problem.q[:: problem.dim] >= 0).all()):
        return solution_of(problem, s, info={"by": "nothing"})
    search = Search(problem, s, tolerance)
    by = "start"
    if not sweeps:
        if not search.seen(search.best):
            by = "points"
            proximal_points(search, search.best, FRESH if start is None else KNOWN, budget)
    elif start is None or not search.seen(search.best):
        for by, pb, c, budgets in search.starts(search.best):
            if search.seen(pb) or search.proximal(pb, c, budgets * budget):
                break
            if budgets and search.finished(budget):
                by = "points"
                break
    return solution_of(
        problem,
        search.sweeps.from_axes(search.best),
        iterations=search.outer,
        factorisations=search.system.factorisations if search.outer else 0,
        history=search.history,
        info={"by": by},
    )
