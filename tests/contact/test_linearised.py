"""A step with frozen contact frames: at z it is the step, and a solution of the step solves it."""

from __future__ import annotations

import numpy as np
import pytest
from heaps import fallen, heap, prepared

from implicit_geom import Scene, shapes
from implicit_geom.contact.linearised import LinearisedStep
from implicit_geom.contact.many_contacts import POINTS
from implicit_geom.contact.rattle_ncp import EndContact, VelocityNCP
from implicit_geom.contact.rounds import from_zero_impulses, solve_by_rounds
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.model.model import Model
from implicit_geom.solvers.contact.solution import ContactSolution
from implicit_geom.solvers.newton import NewtonOptions
from implicit_geom.steppers.euler import EulerStepper


def mixed() -> tuple[StepNCP, np.ndarray]:
    """Balls on a floor with torsion, beside a wall with friction, against each other without any."""
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("wall", shapes.halfspace((1, 0, 0)), fixed=True)
    for k in range(3):
        place = (0.1 + 0.2 * k, 0.001 * k, 0.1)
        scene.add(f"b{k}", shapes.sphere(0.1), mass=1.0 + k, position=place, velocity=(-1, 0.2, 0))
    scene.friction(mu=0.0)
    for k in range(3):
        scene.friction("floor", f"b{k}", mu=0.3, e_r=0.05)
        scene.friction("wall", f"b{k}", mu=0.5, e_o=0.4, direction=(0, 1, 0))
    return prepared(scene, 0.01)


CASES = {"heap": lambda: prepared(heap(5, 0.4), 0.05), "ellipsoids": lambda: fallen(0.4), "mixed": mixed}


@pytest.mark.parametrize("case", CASES)
def test_a_solution_of_the_step_solves_its_contact_problem(case: str) -> None:
    """Velocities and impulses of the step leave 1e-8 of the speeds at most; other velocities leave more."""
    problem, z = CASES[case]()
    found = solve_by_rounds(problem, z, from_zero_impulses, POINTS, NewtonOptions())
    assert found.converged
    step = LinearisedStep(problem, found.z)
    own = ContactSolution(step.contacts, step.nu, step.start, np.zeros(0))
    assert step.start.max() > 1e-3
    assert own.error < 1e-8 * step.fastest
    kick = 1e-3 * np.random.default_rng(0).normal(size=step.nu.size)
    assert ContactSolution(step.contacts, step.nu + kick, step.start, np.zeros(0)).error > 1e-5


@pytest.mark.parametrize("case", CASES)
def test_the_way_back(case: str) -> None:
    """Unknowns of the velocities and impulses at hand: the same, with closest points that are settled."""
    problem, z = CASES[case]()
    step = LinearisedStep(problem, z)
    rng = np.random.default_rng(1)
    nu, p = step.nu + rng.normal(size=step.nu.size), step.start.copy()
    p[:: step.dim] += rng.uniform(0.1, 1.0, p[:: step.dim].size)
    there = step.unknowns(ContactSolution(step.contacts, nu, p, np.zeros(0)))
    np.testing.assert_array_equal(there[: nu.size], nu)
    again = LinearisedStep(problem, there)
    np.testing.assert_allclose(again.start, p, rtol=1e-14, atol=0)
    rows = problem.residual(there, 0.0)
    for g, own, _ in problem.members():
        assert np.abs(rows[own[:, : g.kernel.layout.at["P_n"].start]]).max() < 1e-9


def test_contact_velocities_are_the_derivative() -> None:
    """Normal rows of H are the slopes of gap over step, those of friction the slip's at rest."""
    problem, z = prepared(heap(4, 0.4), 0.05)
    z[: problem.bodies.size] = 0.0
    step = LinearisedStep(problem, z)
    assert step.symmetric
    rng = np.random.default_rng(2)
    dnu, d = rng.normal(size=step.nu.size), 1e-6
    u = []
    for sign in (1, -1):
        moved = ContactSolution(step.contacts, step.nu + sign * d * dnu, step.start, np.zeros(0))
        there = LinearisedStep(problem, step.unknowns(moved))
        u.append(there.contacts.contact_velocity(there.nu))
    slope = (u[0] - u[1]) / (2 * d)
    np.testing.assert_allclose(step.contacts.H.T @ dnu, slope, rtol=0, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize(("sense", "symmetric"), [(-1.0, True), (1.0, False)])
def test_steps_that_run_backwards(sense: float, symmetric: bool) -> None:
    """A contact that slides in them has velocities that do not belong to its impulses: no contact problem."""
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 0, 0))
    scene.friction(mu=0.3)
    model = Model(scene)
    stepper, state = EulerStepper(model), model.initial_state()
    stepper.memory.fill(state, [0])
    problem = stepper.search.equations(VelocityNCP, [0])
    axes = np.eye(3)
    arm = np.array((0, 0, -0.1))
    contact = EndContact(arm, arm, axes[2], axes[0], axes[1], 0.0, np.zeros(0), np.zeros(3), 0.5)
    z = problem.prepare_contacts(state, -0.01, -0.01 * model.loads(0.0), {0: contact}, 1e-10)
    problem.groups[0].set("sense", sense)
    assert LinearisedStep(problem, z).symmetric == symmetric
