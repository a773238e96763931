"""What the experiments compare with is what it says: closed forms, angles, zeros, approach, lowest point."""

from types import SimpleNamespace

import numpy as np
import pytest

from implicit_geom import Scene, rotation, shapes, simulate
from implicit_geom.experiments.approach import approach_velocity, lowest_point
from implicit_geom.experiments.comparison import ledger_checks, rows_at, turn_between
from implicit_geom.experiments.disc_on_edge import RADIUS, period, steady_states
from implicit_geom.experiments.rattleback import last_zero
from implicit_geom.experiments.references import reference
from implicit_geom.experiments.sliding_ball_reference import CASES, exact_states, sliding
from implicit_geom.model.records import VELOCITY


def test_turn_between_is_the_angle_and_knows_no_sign() -> None:
    q = rotation.exp(np.array([0.3, -0.2, 0.5]))
    for angle in (1e-9, 0.1, 3.0):
        p = rotation.multiply(rotation.exp(angle * np.array([0.6, 0.0, 0.8])), q)
        assert turn_between(p, q) == pytest.approx(angle, rel=1e-6)
        assert turn_between(-p, q) == pytest.approx(angle, rel=1e-6)


def test_a_time_between_rows_is_refused() -> None:
    np.testing.assert_array_equal(rows_at(np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.1])), [2, 1])
    with pytest.raises(ValueError, match=r"0\.15"):
        rows_at(np.array([0.0, 0.1, 0.2]), np.array([0.15]))


def test_last_zero_of_a_sine() -> None:
    t = np.linspace(0, 7, 7001)
    assert last_zero(t, np.sin(t)) == pytest.approx(2 * np.pi, abs=1e-6)
    assert np.isnan(last_zero(t, 2 + np.sin(t)))


def test_steady_disc_rolls_without_slip_and_turns_as_it_says() -> None:
    t, dt = np.linspace(0, 2 * period(), 17), 1e-6
    now, then = steady_states(t), steady_states(t + dt)
    arm = now["contact_point"] - now["x"]
    np.testing.assert_allclose(now["v"] + np.cross(now["omega"], arm), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(arm, axis=1), RADIUS, rtol=1e-12)
    step = rotation.multiply(then["q"], now["q"] * [1, -1, -1, -1])
    middle = (now["omega"] + then["omega"]) / 2
    np.testing.assert_allclose(2 * step[:, 1:] / dt, middle, atol=1e-7)


@pytest.mark.parametrize("name", ["slide", "backspin"])
def test_slide_in_closed_form_is_the_reference(name: str) -> None:
    exact = CASES[name].exact
    states = {key: np.array(column) for key, column in exact["states"].items()}
    found = sliding(exact["inputs"], states["t"])
    for key in ("x", "v", "omega"):
        np.testing.assert_allclose(found[key], states[key], atol=1e-12)
    assert np.max(turn_between(found["q"], states["q"])) < 1e-12


def test_a_ball_that_spins_is_known_at_the_references_times_and_after_its_slip() -> None:
    case = CASES["slide and spin"]
    found = exact_states(case, np.array([0.5, 0.51, case.stop, 3.0]))
    assert np.isnan(found["x"][1]).all()
    states = case.exact["states"]
    np.testing.assert_allclose(found["x"][3], states["x"][-1], atol=1e-12)
    np.testing.assert_allclose(found["v"][0], states["v"][states["t"].index(0.5)])


def test_approach_of_a_turning_body_towards_a_moving_one() -> None:
    """Two bodies meet along x at the origin; the second one also turns, its arm is one metre along y."""
    fields = [("solve", "i8"), ("stage", "i8"), ("first", "i8"), ("second", "i8")]
    row = np.zeros(1, [*fields, ("point", "f8", 3), ("normal", "f8", 3)])
    row["solve"], row["stage"], row["second"], row["normal"] = 1, VELOCITY, 1, (1, 0, 0)
    solves = SimpleNamespace(
        table=np.array([("rattle",), ("rattle",)], [("form", "U6")]),
        contacts=row,
        x=np.zeros((2, 2, 3)) + np.array([[0, 0, 0], [0, -1.0, 0]]),
        v=np.array([[[0, 0, 0], [0, 0, 0]], [[0.5, 0, 0], [-0.25, 7, 0]]], float),
        w=np.array([[[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 2.0]]], float),
    )
    run = SimpleNamespace(solves=solves)
    # v of the second body's point: -0.25 - 2 * 1 along x; of the first: 0.5
    assert approach_velocity(run)[0] == pytest.approx(0.5 + 0.25 + 2.0)
    solves.table["form"] = "euler"
    assert approach_velocity(run).size == 0


def test_lowest_point_of_a_tilted_box_with_its_centre_of_mass_off_centre() -> None:
    s = Scene(gravity=(0, 0, 0))
    half, com, angle = np.array([0.3, 0.2, 0.1]), np.array([0.05, 0.0, -0.02]), 0.4
    q = (np.cos(angle / 2), 0, np.sin(angle / 2), 0)
    inertia = (0.01, 0.02, 0.02)
    s.add("body", shapes.box(*half), mass=1.0, com=com, inertia=inertia, position=(0, 0, 2), orientation=q)
    run = simulate(s, duration=0.01, step=0.01, progress=False)
    R = rotation.matrix(np.array(q))
    corners = half * np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    np.testing.assert_allclose(
        lowest_point(run, "body"), np.min(2 + ((corners - com) @ R.T)[:, 2]), atol=1e-12
    )


def test_a_ledger_that_does_not_balance_is_noticed() -> None:
    ledger = {name: np.zeros(3) for name in ("time", "kinetic", "potential", "work", "friction", "impact")}
    ledger |= {"kinetic": np.array([2.0, 1.5, 1.0]), "friction": np.array([0.0, 0.5, 0.5])}
    ledger["remainder"] = np.zeros(3)
    assert all(check.passed for check in ledger_checks(ledger))
    ledger["friction"] = np.array([0.0, 0.5, 0.4])
    assert not all(check.passed for check in ledger_checks(ledger))


@pytest.mark.parametrize("name", ["ellipsoid_rolling", "rattleback", "disc_on_edge", "sphere_sliding"])
def test_references_say_what_they_are(name: str) -> None:
    kept = reference(name)
    assert "independently" in kept["what"]
    assert "SI units" in kept["conventions"]
