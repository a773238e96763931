"""What every implicit stepper needs: candidate pairs, warm starts, and ways to look for a solution.

A solve is tried warm; where the Newton core finds nothing it starts again from other points and then
follows the smoothing path (`Stepper._starts` lists them in order). Steps with many contacts are solved in
proximal rounds instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Generic, TypeVar, cast

import numpy as np

from implicit_geom.contact.islands import Islands, solve_apart
from implicit_geom.contact.linearised import settle_points
from implicit_geom.contact.many_contacts import go_on, ways
from implicit_geom.contact.step_ncp import StepProblem
from implicit_geom.equations.tangent import references
from implicit_geom.geometry.broad_phase import BroadPhase
from implicit_geom.geometry.distance import closest
from implicit_geom.geometry.many_closest_points import closest_points, suits
from implicit_geom.interface.errors import SimulationError
from implicit_geom.model.contact_group import ContactGroup, WarmStart
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.model.records import Failure
from implicit_geom.scene.scene import Friction
from implicit_geom.solvers.newton import DENSE, NewtonOptions, Solution, follow_path, solve
from implicit_geom.steppers.seams import passed_over

MAX_HALVINGS = 20  # a millionth of the step: room for a bullet and a plate
MAX_SOLVES = 4096  # parts of one step
JUMP = 100.0  # weight of multipliers against constraints where a contact may jump
IMPACT = 10.0  # impulse to start from in an impact, in units of effective mass times speed scale
MAX_ROUNDS = 20  # solves of one step with a growing set of candidate pairs

CROWD = 500  # candidates of which the likely ones are looked at first
NEWCOMERS = 8  # pairs that are quicker looked at together

P = TypeVar("P", bound=StepProblem)


@dataclass
class Settled(Generic[P]):
    """A solution with every pair that matters among its candidates."""

    problem: P
    solution: Solution
    status: str
    nu: np.ndarray


class Stepper:
    """Keeps a model's warm starts between steps; a subclass says what a step is."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: NewtonOptions | None = None,
        friction_tolerance: float = 0.0,
    ) -> None:
        self.model = model
        self.tolerance = tolerance
        self.friction_tolerance = friction_tolerance
        self.options = options or NewtonOptions()
        self.broad = BroadPhase(model)
        self.seams = model.pairs.have_seams
        self.warm: dict[int, WarmStart] = {}
        self.begun = False  # a step was taken, or is remembered from an earlier run
        self.history: tuple[float, np.ndarray] | None = None  # of `implicit_geom.compiled`: last solutions
        self._problems: dict[tuple[str | int, ...], StepProblem] = {}

    def _settle(
        self, kind: type[P], state: State, h: float, impulse: np.ndarray, thorough: bool = True
    ) -> Settled[P] | Failure:
        """Solve for the motion over h with all pairs that it may bring together."""
        loads = impulse / h
        candidates = self.broad.candidates(state, abs(h), loads)
        if len(candidates) > CROWD:
            # what is unlikely to touch comes after, with the others' motion known
            self._fill_warm(state, candidates)
            candidates = self.broad.likely(state, abs(h), loads, candidates)
        last: tuple[P, np.ndarray] | None = None
        iterations = 0
        for _ in range(MAX_ROUNDS):
            problem = self._problem(kind, candidates)
            self._fill_warm(state, candidates)
            found, status, histories = self._attempts(problem, state, h, impulse, thorough, last)
            over = passed_over(self, problem, found, state, h, impulse) if self.seams else None
            if over is not None:
                problem, found, status = cast(P, over[0]), over[1], "continued"
            if found is None:
                return "Newton's method found no solution", histories
            iterations += found.iterations
            nu = self._velocities(problem, found.z)
            missed = self.broad.missed(state, nu, abs(h), candidates)
            if not missed:
                break
            last = (problem, found.z)
            candidates = sorted({*candidates, *missed})
        else:
            return "the set of candidate pairs did not settle", histories
        found.iterations = iterations
        crossing = self._crossing(problem, found.z, state, h)
        return (crossing, histories) if crossing else Settled(problem, found, status, nu)

    def _crossing(self, problem: StepProblem, z: np.ndarray, state: State, h: float) -> str:
        """What the motion of a solution passes through on its way, as a reason; empty where it is free."""
        crossed = self.broad.crossed(state, self._velocities(problem, z), h, problem.ends(z))
        if crossed is None:
            return ""
        pair = self.model.pairs[crossed]
        names = f"{self.model.names[pair.first]!r} and {self.model.names[pair.second]!r}"
        return f"tunnelling: the motion of {names} crosses within the step"

    def _problem(self, kind: type[P], candidates: list[int]) -> P:
        key: tuple[str | int, ...] = (kind.__name__, *candidates)
        if key not in self._problems:
            if len(self._problems) > 64:
                self._problems.clear()
            self._problems[key] = kind(self.model, candidates)
        return cast(P, self._problems[key])

    def _attempts(
        self,
        problem: StepProblem,
        state: State,
        h: float,
        impulse: np.ndarray,
        thorough: bool,
        last: tuple[StepProblem, np.ndarray] | None,
    ) -> tuple[Solution | None, str, list[list[float]]]:
        z0 = problem.prepare(state, h, impulse, self.warm, self.tolerance, self.friction_tolerance)
        starts = self._starts(problem, state, h, impulse, z0, thorough)
        if problem.pattern is None:
            return _first_solution(problem, starts)
        near = z0
        if last is not None:
            # a few more pairs rarely matter; what was found without them is close
            near = problem.carried(z0, *last)
            settle_points(problem, near)
            starts = chain(self._starts_near(problem, near), starts)
        islands = Islands.of(problem)
        if islands.count == 1:
            return _first_solution(problem, starts)
        apart = solve_apart(problem, islands, near, self.options)
        solution = Solution(apart.z, bool(np.all(apart.solved)), apart.iterations, apart.history)
        histories = [apart.history]
        if solution.converged and problem.certified(apart.z):
            return solution, "converged", histories
        hard = [islands.candidates(problem, k) for k in np.flatnonzero(~apart.solved).tolist()]
        if solution.converged or len(hard[0]) == len(problem.candidates):
            found, status, more = _first_solution(problem, starts)
            return found, status, histories + more
        status = "converged"
        for candidates in hard:
            part = self._problem(type(problem), candidates)
            known = None if last is None else (problem, near)
            found, reached, more = self._attempts(part, state, h, impulse, thorough, known)
            histories += more
            if found is None:
                break
            status = reached if reached == "continued" else status
            solution.iterations += found.iterations
            solution.z = problem.carried(solution.z, part, found.z, part.moved_by_contacts)
        else:
            whole = solve(problem, solution.z, self.options, damped=False)
            whole.iterations += solution.iterations
            histories.append(whole.history)
            if whole.converged and problem.certified(whole.z):
                return whole, status, histories
        found, status, more = _first_solution(problem, starts)
        return found, status, histories + more

    def _starts_near(
        self, problem: StepProblem, near: np.ndarray
    ) -> Iterator[Callable[[], tuple[Solution, str]]]:
        """Ways from what was found without some of the pairs."""
        yield lambda: (solve(problem, near, self.options, damped=False), "converged")
        if self.model.friction_residual != "fritz-john":
            yield partial(_continued, partial(go_on, problem, near, self.options))

    def _starts(
        self,
        problem: StepProblem,
        state: State,
        h: float,
        impulse: np.ndarray,
        z0: np.ndarray,
        thorough: bool,
    ) -> Iterator[Callable[[], tuple[Solution, str]]]:
        """Ways to look for a solution, cheapest first; without `thorough` the smoothing path is left out."""
        yield lambda: (solve(problem, z0, self.options, damped=False), "converged")
        large = problem.pattern is not None
        rounds = ways(problem, z0, self.options)
        if large and problem.pressed(z0):
            yield from (partial(_continued, way) for way in islice(rounds, 1))
        # a contact that jumps along an edge or across a face: let the multipliers' signs decide;
        # in an impact the impulse must be of the right order for the contact point to be found
        problem.weigh(JUMP)
        yield lambda: (solve(problem, z0, self.options, damped=False), "converged")
        yield lambda: (solve(problem, problem.struck(z0, IMPACT), self.options, damped=False), "converged")
        problem.weigh(1.0)
        if large:
            yield from (partial(_continued, way) for way in islice(rounds, 2))
        if problem.size > DENSE:
            yield from (partial(_continued, way) for way in rounds)
            return
        # closest points at the pose expected, where a body turns far within the step
        turned = self._placed_at(problem, state, h, z0)
        yield lambda: (solve(problem, turned, self.options), "converged")
        if not thorough:
            return
        fresh = {c: self._fresh(state, c) for c in problem.candidates}
        z1 = problem.prepare(state, h, impulse, fresh, self.tolerance)
        yield lambda: (follow_path(problem, z1, self.options), "continued")
        problem.weigh(JUMP)
        yield lambda: (follow_path(problem, problem.struck(z1, IMPACT), self.options), "continued")
        problem.weigh(1.0)
        yield from (partial(_continued, way) for way in rounds)

    def _placed_at(self, problem: StepProblem, state: State, h: float, z0: np.ndarray) -> np.ndarray:
        """z0 with the closest points at the pose that its velocities lead to.

        A pair whose bodies would be on the wrong side of each other there is left alone.
        """
        z = z0.copy()
        there = state.advanced(self._velocities(problem, z0), h)
        for c, where in zip(problem.order, problem.contact_slices, strict=True):
            pair = self.model.pairs[c]
            a, b = (self.model.placed(there, piece) for piece in pair.pieces)
            found = closest(a, b)
            if found.points.normal @ self.broad.normals[c] > 0:
                layout = pair.kernel.layout
                u = z[where]
                u[: layout.geometry] = found.unknowns
                u[layout.at["D"]] /= abs(h)
        return z

    def widen(self, state: State, h: float) -> None:
        """Keep warm starts for pairs that may matter within a few steps, too."""
        self.know(state, self.broad.around(state, abs(h), self.model.loads(state.time)))

    def know(self, state: State, candidates: list[int]) -> None:
        """Have warm starts for the given pairs."""
        new = [c for c in candidates if c not in self.warm]
        if len(new) > NEWCOMERS:
            self._know_many(state, new)
        for c in new:
            if c not in self.warm:
                self.warm[c] = self._fresh(state, c)

    def _know_many(self, state: State, new: list[int]) -> None:
        """Warm starts of pairs whose closest points are found all at once."""
        pairs = self.model.pairs
        numbers = np.array(new, int)
        sorts = pairs.sorts(numbers)
        for s in np.unique(sorts):
            chosen = numbers[sorts == s]
            sort = pairs.sort(int(s), int(chosen[0]))
            if not suits(sort.kernel):
                continue
            g = ContactGroup(self.model, sort.kernel, chosen, [sort] * len(chosen))
            rough = state.x[g.second] - state.x[g.first]
            rough /= np.maximum(np.linalg.norm(rough, axis=1), 1e-300)[:, None]
            for k, c in enumerate(chosen.tolist()):
                rough[k] = self.broad.normals.get(c, rough[k])
            u, n, settled = closest_points(self.model, g, state, rough)
            unknowns = np.zeros((g.n, g.kernel.layout.size))
            unknowns[:, : u.shape[1]] = u
            for k in np.flatnonzero(settled).tolist():
                c = int(chosen[k])
                self.broad.normals[c] = n[k]
                self.warm[c] = WarmStart(unknowns[k], self._direction(sort.law, n[k], None), 1.0, 1.0)

    def _fill_warm(self, state: State, candidates: list[int]) -> None:
        self.know(state, candidates)
        for c in self.warm.keys() - set(candidates):
            del self.warm[c]

    def _fresh(self, state: State, c: int) -> WarmStart:
        """Closest points at the start of the step, no impulse."""
        pair = self.model.pairs[c]
        a, b = (self.model.placed(state, piece) for piece in pair.pieces)
        found = closest(a, b, self.broad.normals.get(c))
        layout = pair.kernel.layout
        u = np.zeros(layout.size)
        u[: layout.geometry] = found.unknowns
        self.broad.normals[c] = found.points.normal
        return WarmStart(u, self._direction(pair.law, found.points.normal, None), 1.0, 1.0)

    def _direction(self, law: Friction, n: np.ndarray, last: np.ndarray | None) -> np.ndarray:
        """The tangent's reference: given, or a world axis well away from the normal, kept while it is."""
        if law.direction is not None:
            return np.array(law.direction)
        last = np.zeros(n.size) if last is None else last
        return references(n[None], last[None])[0]

    def _check_tangent(self, pair: Pair, t: np.ndarray) -> None:
        """A given direction along the normal leaves the tangent without a meaning."""
        if pair.law.direction is not None and abs(np.linalg.norm(t) - 1) > 1e-6:
            names = f"{self.model.names[pair.first]!r} and {self.model.names[pair.second]!r}"
            raise SimulationError(
                f"friction.direction of {names} is parallel to the contact normal; choose one across it"
            )

    def _velocities(self, problem: StepProblem, z: np.ndarray) -> np.ndarray:
        m = self.model
        nu = np.zeros((len(m.bodies), problem.velocities))
        nu[m.moving] = z[: m.moving.size * problem.velocities].reshape(m.moving.size, -1)
        return nu


def _first_solution(
    problem: StepProblem, starts: Iterable[Callable[[], tuple[Solution, str]]]
) -> tuple[Solution | None, str, list[list[float]]]:
    """The first of some ways to end at a solution, its status, and the histories of all that were tried."""
    histories: list[list[float]] = []
    iterations = 0
    for attempt in starts:
        found, status = attempt()
        histories.append(found.history)
        iterations += found.iterations
        if found.converged and problem.certified(found.z):
            found.iterations = iterations
            return found, status, histories
    return None, "failed", histories


def _continued(way: Callable[[], Solution]) -> tuple[Solution, str]:
    return way(), "continued"
