"""`implicit-euler`: the geometrically implicit step of C07, eqs. 10 and 11.

A step is tried warm; where the Newton core finds nothing it starts again from other points and then
follows the smoothing path (`EulerStepper._starts` lists them in order); where that fails too, or the
motion crosses a body on the way, the step is halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from implicit_geom.broadphase import BroadPhase
from implicit_geom.contact_group import WarmStart
from implicit_geom.distance import closest
from implicit_geom.errors import SimulationError
from implicit_geom.model import Model, Pair, State
from implicit_geom.newton import NewtonOptions, Solution, follow_path, solve
from implicit_geom.problem import StepProblem

MAX_HALVINGS = 20  # a millionth of the step: room for a bullet and a plate
MAX_SOLVES = 4096  # parts of one step
JUMP = 100.0  # weight of multipliers against constraints where a contact may jump
IMPACT = 10.0  # impulse to start from in an impact, in units of effective mass times speed scale
MAX_ROUNDS = 20  # solves of one step with a growing set of candidate pairs


@dataclass
class ContactRecord:
    """A closed contact at the end of a solve, in the scene's order of bodies."""

    pair: int
    point: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    binormal: np.ndarray
    gap: float
    p_n: float
    p_f: np.ndarray  # p_t, p_o, p_r
    slip: np.ndarray  # v_t, v_o, v_r


@dataclass
class Solve:
    """One accepted solve: a whole step, or a part of one."""

    start: State
    end: State
    h: float
    contacts: list[ContactRecord]
    iterations: int
    status: str  # converged or continued
    residual: float


@dataclass
class Attempt:
    """The outcome of a step: its solves, or why there are none."""

    solves: list[Solve] = field(default_factory=list)
    reason: str = ""
    history: list[list[float]] = field(default_factory=list)


class EulerStepper:
    """Steps a model; keeps the warm starts between steps."""

    def __init__(self, model: Model, tolerance: float = 1e-10, options: NewtonOptions | None = None) -> None:
        self.model = model
        self.tolerance = tolerance
        self.options = options or NewtonOptions()
        self.broad = BroadPhase(model)
        self.warm: dict[int, WarmStart] = {}
        self._problems: dict[tuple[int, ...], StepProblem] = {}

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h, in parts where that is needed: a part that fails is halved."""
        saved = dict(self.warm)
        solves: list[Solve] = []
        history: list[list[float]] = []
        parts = [(h, 0)]  # lengths still to be taken, next one last, with their number of halvings
        while parts:
            length, halvings = parts.pop()
            outcome: Solve | tuple[str, list[list[float]]]
            try:
                outcome = self._solve(state, length)
            except SimulationError as error:
                outcome = (str(error), [])
            if isinstance(outcome, Solve):
                solves.append(outcome)
                state = outcome.end
                continue
            reason, histories = outcome
            history += histories
            if halvings == MAX_HALVINGS or len(solves) + len(parts) >= MAX_SOLVES:
                self.warm = saved
                return Attempt([], reason, history)
            parts += [(length / 2, halvings + 1)] * 2
        return Attempt(solves)

    def _solve(self, state: State, h: float) -> Solve | tuple[str, list[list[float]]]:
        """One solve over h; a reason and the residual histories where there is no solution."""
        loads = self.model.loads(state.time)
        candidates = self.broad.candidates(state, h, loads)
        for _ in range(MAX_ROUNDS):
            problem = self._problem(candidates)
            self._fill_warm(state, candidates)
            found, status, histories = self._attempts(problem, state, h, loads)
            if found is None:
                return "Newton's method found no solution", histories
            nu = self._velocities(problem, found.z)
            missed = self.broad.missed(state, nu, h, candidates)
            if not missed:
                break
            candidates = sorted({*candidates, *missed})
        else:
            return "the set of candidate pairs did not settle", histories
        crossed = self.broad.crossed(state, nu, h, problem.ends(found.z))
        if crossed is not None:
            pair = self.model.pairs[crossed]
            names = f"{self.model.names[pair.first]!r} and {self.model.names[pair.second]!r}"
            return f"tunnelling: the motion of {names} crosses within the step", histories
        end = state.advanced(nu, h)
        records = self._accept(problem, found.z, end, h)
        residual = float(np.max(np.abs(problem.residual(found.z, 0.0)), initial=0.0))
        return Solve(state, end, h, records, found.iterations, status, residual)

    def _problem(self, candidates: list[int]) -> StepProblem:
        key = tuple(candidates)
        if key not in self._problems:
            if len(self._problems) > 64:
                self._problems.clear()
            self._problems[key] = StepProblem(self.model, candidates)
        return self._problems[key]

    def _attempts(
        self, problem: StepProblem, state: State, h: float, loads: np.ndarray
    ) -> tuple[Solution | None, str, list[list[float]]]:
        z0 = problem.prepare(state, h, loads, self.warm, self.tolerance)
        histories: list[list[float]] = []
        iterations = 0
        for attempt in self._starts(problem, state, h, loads, z0):
            found, status = attempt()
            histories.append(found.history)
            iterations += found.iterations
            if found.converged and problem.certified(found.z):
                found.iterations = iterations
                return found, status, histories
        return None, "failed", histories

    def _starts(
        self, problem: StepProblem, state: State, h: float, loads: np.ndarray, z0: np.ndarray
    ) -> Iterator[Callable[[], tuple[Solution, str]]]:
        """Ways to look for a solution, cheapest first."""
        yield lambda: (solve(problem, z0, self.options, damped=False), "converged")
        # a contact that jumps along an edge or across a face: let the multipliers' signs decide;
        # in an impact the impulse must be of the right order for the contact point to be found
        problem.weigh(JUMP)
        yield lambda: (solve(problem, z0, self.options, damped=False), "converged")
        yield lambda: (solve(problem, problem.struck(z0, IMPACT), self.options, damped=False), "converged")
        problem.weigh(1.0)
        # closest points at the pose expected, where a body turns far within the step
        turned = self._placed_at(problem, state, h, z0)
        yield lambda: (solve(problem, turned, self.options), "converged")
        fresh = {c: self._fresh(state, c) for c in problem.candidates}
        z1 = problem.prepare(state, h, loads, fresh, self.tolerance)
        yield lambda: (follow_path(problem, z1, self.options), "continued")
        problem.weigh(JUMP)
        yield lambda: (follow_path(problem, problem.struck(z1, IMPACT), self.options), "continued")

    def _placed_at(self, problem: StepProblem, state: State, h: float, z0: np.ndarray) -> np.ndarray:
        """z0 with the closest points at the pose that its velocities lead to.

        A pair whose bodies would be on the wrong side of each other there is left alone.
        """
        z = z0.copy()
        there = state.advanced(self._velocities(problem, z0), h)
        for c, where in zip(problem.order, problem.contact_slices, strict=True):
            pair = self.model.pairs[c]
            found = closest(self.model.placed(there, pair.first), self.model.placed(there, pair.second))
            if found.points.normal @ self.broad.normals[c] > 0:
                layout = pair.kernel.layout
                u = z[where]
                u[: layout.geometry] = found.unknowns
                u[layout.at["D"]] /= h
        return z

    def _fill_warm(self, state: State, candidates: list[int]) -> None:
        for c in candidates:
            if c not in self.warm:
                self.warm[c] = self._fresh(state, c)
        for c in [c for c in self.warm if c not in set(candidates)]:
            del self.warm[c]

    def _fresh(self, state: State, c: int) -> WarmStart:
        """Closest points at the start of the step, no impulse."""
        pair = self.model.pairs[c]
        a, b = self.model.placed(state, pair.first), self.model.placed(state, pair.second)
        found = closest(a, b, self.broad.normals.get(c))
        layout = pair.kernel.layout
        u = np.zeros(layout.size)
        u[: layout.geometry] = found.unknowns
        u[layout.at["D"]] = 0.0
        self.broad.normals[c] = found.points.normal
        return WarmStart(u, self._direction(pair, found.points.normal, None), 1.0, 1.0)

    def _direction(self, pair: Pair, n: np.ndarray, last: np.ndarray | None) -> np.ndarray:
        """The tangent's reference: given, or a world axis well away from the normal, kept while it is."""
        if pair.law.direction is not None:
            return np.array(pair.law.direction)
        if last is not None and abs(last @ n) < 0.9:
            return last
        return np.eye(n.size)[np.argmin(np.abs(n))]

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

    def _accept(self, problem: StepProblem, z: np.ndarray, end: State, h: float) -> list[ContactRecord]:
        """Keep the unknowns for the next step and list the closed contacts."""
        records = []
        k = 0
        for g, inputs in zip(problem.groups, problem.gather, strict=True):
            seen = g.report(z[inputs], g.parameters)[0]
            m_c = g.get("m_c")[:, 0]
            dim, layout = self.model.dim, g.kernel.layout
            for i, pair in enumerate(g.pairs):
                c = problem.order[k]
                u = z[problem.contact_slices[k]].copy()
                k += 1
                r2, n, t, o = (seen[i, j * dim : (j + 1) * dim] for j in range(4))
                gap, p_n = seen[i, 4 * dim], seen[i, 4 * dim + 1]
                kept = layout.components
                p_f, slip = np.zeros(3), np.zeros(3)
                where = ["tor".index(name) for name in g.kernel.kind.components]
                p_f[where] = seen[i, 4 * dim + 2 : 4 * dim + 2 + kept]
                slip[where] = seen[i, 4 * dim + 2 + kept :]
                self.broad.normals[c] = n.copy()
                self.warm[c] = WarmStart(
                    u, self._direction(pair, n, g.get("direction")[i].copy()), float(m_c[i]), h
                )
                # closed: the natural map's active branch, P_n > gap / h
                if p_n / m_c[i] > gap / h:
                    self._check_tangent(pair, t)
                    sign = -1.0 if pair.swapped else 1.0
                    p_f[0] *= sign
                    slip[0] *= sign
                    records.append(
                        ContactRecord(
                            c,
                            end.x[pair.second] + r2,
                            sign * n,
                            t.copy(),
                            sign * o,
                            float(gap),
                            float(p_n),
                            p_f,
                            slip,
                        )
                    )
        return records
