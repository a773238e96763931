"""The search for a solution of a step's equations with given candidate pairs.

Newton's method is tried from the warm start; where it finds nothing it starts again from other initial
guesses and then follows the smoothing path (`SolutionSearch._guesses` lists them in order). Steps with many
contacts are cut into islands, and solved by the methods of `contact.many_contacts` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import TypeVar, cast

import numpy as np

from implicit_geom.contact.islands import Islands, solve_islands
from implicit_geom.contact.linearised import update_closest_points
from implicit_geom.contact.many_contacts import from_known_impulses, methods
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.model.model import Model, State
from implicit_geom.solvers.newton import DENSE, NewtonOptions, NewtonResult, follow_path, solve_by_newton
from implicit_geom.steppers.events.islands import pairs_within
from implicit_geom.steppers.memory import StepperMemory

P = TypeVar("P", bound=StepNCP)
Guess = Callable[[], tuple[NewtonResult, str]]  # a solution, if it is one, and its status
Found = tuple[NewtonResult | None, str, list[list[float]]]  # with the residual histories of all attempts


@dataclass(frozen=True)
class SearchOptions:
    """How a solution of a step is looked for."""

    newton: NewtonOptions = field(default_factory=NewtonOptions)
    jump_weight: float = 100.0  # weight of multipliers against constraints where a contact may jump
    impact_impulse: float = 10.0  # impulse to start from in an impact, over effective mass times speed scale
    candidate_rounds: int = 20  # solves of one step with a growing set of candidate pairs
    crowd: int = 500  # candidates of which the likely ones are looked at first
    batch: int = 8  # new pairs whose closest points are quicker found together
    dense: int = DENSE  # unknowns up to which damped steps and the smoothing path are tried
    condensed: int = 250  # unknowns above which each contact is eliminated by itself
    many_contacts: bool = True  # whether the methods of `contact.many_contacts` are tried
    halvings: int = 20  # of a step: a millionth of it, room for a bullet and a plate
    solves: int = 4096  # parts of one step


class SolutionSearch:
    """Looks for solutions of steps of one model; keeps the equations of recent sets of candidate pairs."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: SearchOptions | None = None,
        friction_tolerance: float = 0.0,
    ) -> None:
        self.model = model
        self.tolerance = tolerance
        self.friction_tolerance = friction_tolerance
        self.options = options or SearchOptions()
        self.memory = StepperMemory(model, self.options.batch)
        self.island: np.ndarray | None = None  # (B,) the bodies at hand, where not all
        self._problems: dict[tuple[str | int, ...], StepNCP] = {}

    def island_pairs(self, pairs: list[int]) -> list[int]:
        """Those of the island at hand."""
        return pairs_within(self.model, pairs, self.island)

    def candidates(self, state: State, h: float, loads: np.ndarray) -> list[int]:
        """Pairs of the island at hand that the motion expected in h might bring together."""
        return self.island_pairs(self.memory.broad.candidates(state, abs(h), loads))

    def missed(self, state: State, nu: np.ndarray, h: float, chosen: list[int]) -> list[int]:
        """Pairs of the island outside `chosen` that the motion found could have brought together."""
        return self.island_pairs(self.memory.broad.missed(state, nu, abs(h), chosen))

    def fill(self, state: State, candidates: list[int]) -> None:
        """Have warm starts for the given pairs, and for no others of the island at hand."""
        if self.island is None:
            self.memory.fill(state, candidates)
        else:
            self.memory.add(state, candidates)

    def equations(self, kind: type[P], candidates: list[int]) -> P:
        """The equations of a step, or stage, with these candidate pairs."""
        key: tuple[str | int, ...] = (kind.__name__, *candidates)
        if key not in self._problems:
            if len(self._problems) > 64:
                self._problems.clear()
            self._problems[key] = kind(self.model, candidates, self.options.condensed)
        return cast(P, self._problems[key])

    def velocities(self, problem: StepNCP, z: np.ndarray) -> np.ndarray:
        """The velocities (B, dim + spins) in a solution."""
        m = self.model
        nu = np.zeros((len(m.bodies), problem.velocities))
        nu[m.moving] = z[: m.moving.size * problem.velocities].reshape(m.moving.size, -1)
        return nu

    def crossing(self, problem: StepNCP, z: np.ndarray, state: State, h: float) -> str:
        """What the motion of a solution passes through on its way, as a reason; empty where it is free."""
        crossed = self.memory.broad.crossed(state, self.velocities(problem, z), h, problem.ends(z))
        if crossed is None:
            return ""
        pair = self.model.pairs[crossed]
        names = f"{self.model.names[pair.first]!r} and {self.model.names[pair.second]!r}"
        return f"tunnelling: the motion of {names} crosses within the step"

    def solve(
        self,
        problem: StepNCP,
        state: State,
        h: float,
        impulse: np.ndarray,
        thorough: bool = True,
        last: tuple[StepNCP, np.ndarray] | None = None,
    ) -> Found:
        """A solution of the step from `state`; `last`, of a problem with fewer pairs, is near it.

        Without `thorough` the smoothing path is left out.
        """
        warm = self.memory.warm
        z0 = problem.prepare(state, h, impulse, warm, self.tolerance, self.friction_tolerance)
        guesses = self._guesses(problem, state, h, impulse, z0, thorough)
        if problem.pattern is None:
            return _first_solution(problem, guesses)
        near = z0
        if last is not None:
            # a few more pairs rarely matter; what was found without them is close
            near = problem.with_solution(z0, *last)
            update_closest_points(problem, near)
            guesses = chain(self._guesses_near(problem, near), guesses)
        islands = Islands.of(problem)
        if islands.count == 1:
            return _first_solution(problem, guesses)
        return self._by_islands(problem, islands, near, guesses, (state, h, impulse, thorough), last)

    def _by_islands(
        self,
        problem: StepNCP,
        islands: Islands,
        near: np.ndarray,
        guesses: Iterable[Guess],
        step: tuple[State, float, np.ndarray, bool],
        last: tuple[StepNCP, np.ndarray] | None,
    ) -> Found:
        """Islands of contact apart: most need a few iterations, and only the others a search of their own."""
        apart = solve_islands(problem, islands, near, self.options.newton)
        solution = NewtonResult(apart.z, bool(np.all(apart.solved)), apart.iterations, apart.history)
        histories = [apart.history]
        if solution.converged and problem.certified(apart.z):
            return solution, "converged", histories
        hard = [islands.candidates(problem, k) for k in np.flatnonzero(~apart.solved).tolist()]
        if solution.converged or len(hard[0]) == len(problem.candidates):
            found, status, more = _first_solution(problem, guesses)
            return found, status, histories + more
        status = "converged"
        for candidates in hard:
            part = self.equations(type(problem), candidates)
            known = None if last is None else (problem, near)
            found, reached, more = self.solve(part, *step, known)
            histories += more
            if found is None:
                break
            status = reached if reached == "continued" else status
            solution.iterations += found.iterations
            solution.z = problem.with_solution(solution.z, part, found.z, part.moved_by_contacts)
        else:
            whole = solve_by_newton(problem, solution.z, self.options.newton, damped=False)
            whole.iterations += solution.iterations
            histories.append(whole.history)
            if whole.converged and problem.certified(whole.z):
                return whole, status, histories
        found, status, more = _first_solution(problem, guesses)
        return found, status, histories + more

    def _guesses_near(self, problem: StepNCP, near: np.ndarray) -> Iterator[Guess]:
        """From what was found without some of the pairs."""
        newton = self.options.newton
        yield lambda: (solve_by_newton(problem, near, newton, damped=False), "converged")
        if self.model.friction_residual != "fritz-john":
            yield partial(_continued, partial(from_known_impulses, problem, near, newton))

    def _guesses(
        self,
        problem: StepNCP,
        state: State,
        h: float,
        impulse: np.ndarray,
        z0: np.ndarray,
        thorough: bool,
    ) -> Iterator[Guess]:
        """Initial guesses with a method each, cheapest first."""
        options, newton = self.options, self.options.newton
        yield lambda: (solve_by_newton(problem, z0, newton, damped=False), "converged")
        large = problem.pattern is not None
        many = methods(problem, z0, newton) if options.many_contacts else iter(())
        if large and problem.carries_impulse(z0):
            yield from (partial(_continued, method) for method in islice(many, 1))
        # a contact that jumps along an edge or across a face: let the multipliers' signs decide;
        # in an impact the impulse must be of the right order for the contact point to be found
        problem.weigh_multipliers(options.jump_weight)
        yield lambda: (solve_by_newton(problem, z0, newton, damped=False), "converged")
        pushed = problem.with_normal_impulses(z0, options.impact_impulse)
        yield lambda: (solve_by_newton(problem, pushed, newton, damped=False), "converged")
        problem.weigh_multipliers(1.0)
        if large:
            yield from (partial(_continued, method) for method in islice(many, 2))
        if problem.size > options.dense:
            yield from (partial(_continued, method) for method in many)
            return
        # closest points at the pose expected, where a body turns far within the step
        turned = self._placed_at_end(problem, state, h, z0)
        yield lambda: (solve_by_newton(problem, turned, newton), "converged")
        if not thorough:
            return
        fresh = {c: self.memory.fresh(state, c) for c in problem.candidates}
        z1 = problem.prepare(state, h, impulse, fresh, self.tolerance)
        yield lambda: (follow_path(problem, z1, newton), "continued")
        problem.weigh_multipliers(options.jump_weight)
        struck = problem.with_normal_impulses(z1, options.impact_impulse)
        yield lambda: (follow_path(problem, struck, newton), "continued")
        problem.weigh_multipliers(1.0)
        yield from (partial(_continued, method) for method in many)

    def _placed_at_end(self, problem: StepNCP, state: State, h: float, z0: np.ndarray) -> np.ndarray:
        """z0 with the closest points at the pose that its velocities lead to.

        A pair whose bodies would be on the wrong side of each other there is left alone.
        """
        z = z0.copy()
        there = state.advanced(self.velocities(problem, z0), h)
        for c, where in zip(problem.order, problem.contact_slices, strict=True):
            pair = self.model.pairs[c]
            a, b = (self.model.placed(there, piece) for piece in pair.pieces)
            found = find_closest_points(a, b)
            if found.points.normal @ self.memory.broad.normals[c] > 0:
                layout = pair.kernel.layout
                u = z[where]
                u[: layout.geometry] = found.unknowns
                u[layout.at["D"]] /= abs(h)
        return z


def _first_solution(problem: StepNCP, guesses: Iterable[Guess]) -> Found:
    """The first guess that leads to a solution, its status, and the histories of all that were tried."""
    histories: list[list[float]] = []
    iterations = 0
    for attempt in guesses:
        found, status = attempt()
        histories.append(found.history)
        iterations += found.iterations
        if found.converged and problem.certified(found.z):
            found.iterations = iterations
            return found, status, histories
    return None, "failed", histories


def _continued(method: Callable[[], NewtonResult]) -> tuple[NewtonResult, str]:
    return method(), "continued"
