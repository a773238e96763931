"""All sixteen combinations keep their own laws, and become one as the step shrinks and facets grow."""

import numpy as np
import pytest
from switch_tables import NAMES, SWITCHES, ellipse, ellipsoid, stepper

from implicit_geom import Scene, Stepper, Trajectory, shapes, simulate
from implicit_geom.classical.stepper import ClassicalStepper
from implicit_geom.model.model import Model
from implicit_geom.steppers.euler import EulerStepper


def run(scene: Scene, how: Stepper | str, duration: float, step: float = 0.01) -> Trajectory:
    return simulate(scene, duration=duration, step=step, stepper=how, progress=False)


@pytest.mark.parametrize("make", [ellipse, ellipsoid])
def test_all_exact_is_implicit_euler(make) -> None:
    """Two independent implementations of C07's step agree in every step, through impact, slip and roll."""
    model = Model(make(high=0.05))
    euler, own = EulerStepper(model), ClassicalStepper(model, Stepper())
    state = model.initial_state()
    for _ in range(40):
        one, two = euler.step(state, 0.01).solves, own.step(state, 0.01).solves
        assert len(one) == len(two) == 1
        np.testing.assert_allclose(two[0].half, one[0].half, atol=1e-9)
        assert [c.pair for c in one[0].contacts] == [c.pair for c in two[0].contacts]
        for a, b in zip(one[0].contacts, two[0].contacts, strict=True):
            assert a.p_n == pytest.approx(b.p_n, abs=1e-9)
            force = [c.p_f[0] * c.tangent + c.p_f[1] * c.binormal for c in (a, b)]
            np.testing.assert_allclose(*force, atol=1e-9)
        state = one[0].end


@pytest.mark.parametrize("make", [ellipse, ellipsoid])
@pytest.mark.parametrize("switches", SWITCHES[1:], ids=NAMES[1:])
def test_own_laws_hold_in_every_step(switches: tuple[str, ...], make) -> None:
    """A drop, an impact, sliding: residuals of the stepper's laws, and the ledger, to rounding."""
    r = run(make(high=0.05), stepper(switches, facets=24), 0.3)
    assert np.all(r.steps["status"] == "converged")
    assert r.steps["residual"].max() <= 1e-10
    for name in ("dynamics", "gap", "complementarity", "friction"):
        assert r.steps[name].max() <= 1e-9, name
    assert np.any(r.contacts["mode"] == "slide")
    book = r.ledger
    change = np.diff(r.energy) - (book["work"] - book["friction"] - book["impact"] + book["remainder"])
    assert np.abs(change).max() <= 1e-12
    if switches[1] == "end":
        assert r.max_penetration <= 1e-12
    elif switches[0] == "implicit":
        assert 1e-7 < r.max_penetration < 1e-2  # the price of the linearised gap


@pytest.mark.parametrize("make", [ellipse, ellipsoid])
@pytest.mark.parametrize("gap", ["end", "linearised"])
@pytest.mark.parametrize("wrench", ["end", "start"])
def test_impulses_act_on_the_surface_of_their_own_pose(gap: str, wrench: str, make) -> None:
    """Where the wrench is that of the start, its point lies on the body as it was then, else as it is now."""
    model = Model(make())
    own = ClassicalStepper(model, Stepper(gap=gap, wrench=wrench, friction="pyramid"))
    state, here, there = model.initial_state(), 0.0, 0.0
    for _ in range(10):
        solve = own.step(state, 0.01).solves[0]
        for c in solve.contacts:
            at, other = (solve.start, solve.end) if wrench == "start" else (solve.end, solve.start)
            here = max(here, abs(model.placed(at, 1).violation(c.point)))
            there = max(there, abs(model.placed(other, 1).violation(c.point)))
        state = solve.end
    assert here < 1e-12
    assert there > 1e-6


@pytest.mark.parametrize("switches", SWITCHES, ids=NAMES)
def test_all_converge_to_the_same_motion(switches: tuple[str, ...]) -> None:
    """h, 1/N and 1/k shrink together: the error falls as h does, exactly so for implicit surfaces."""
    make, duration = (ellipse, 0.4) if switches[3] == "ellipsoid" else (ellipsoid, 0.2)
    exact = run(make(), "implicit-rattle", duration, 0.002)["egg"].position[-1]
    errors = []
    for k, h in enumerate((0.02, 0.005)):
        how = stepper(switches, facets=64 * 16**k, directions=8 * 4**k)
        errors.append(np.linalg.norm(run(make(), how, duration, h)["egg"].position[-1] - exact))
    assert errors[1] <= errors[0] / 2.8
    if switches[0] == "implicit" and switches[3] == "ellipsoid":
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_pyramid_and_ellipsoid_are_one_in_the_plane() -> None:
    one, two = (
        run(ellipse(high=0.05), Stepper(gap="linearised", friction=f), 0.2) for f in ("pyramid", "ellipsoid")
    )
    np.testing.assert_array_equal(one["egg"].position, two["egg"].position)


@pytest.mark.parametrize("aligned", [False, True])
def test_pyramid_bends_the_path_unless_it_is_aligned(aligned: bool) -> None:
    """A ball pushed between two directions leaves its line; with the pyramid along the slip it does not."""
    s = Scene()
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    angle = 0.3
    at = {"position": (0, 0, 0.5), "velocity": (np.cos(angle), np.sin(angle), 0)}
    s.add("ball", shapes.sphere(0.5), mass=1.0, **at)
    s.friction(mu=0.1, direction=(1, 0, 0))
    r = run(s, Stepper(friction="pyramid", directions=4, aligned=aligned), 0.5)
    x, y = r["ball"].position[-1, :2]
    off = abs(x * np.sin(angle) - y * np.cos(angle))
    assert off <= 1e-9 if aligned else off > 0.005
