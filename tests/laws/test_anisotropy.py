"""Friction that depends on direction, and friction that must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import STEPPERS, TWO, measured_order, turned

from implicit_geom import Scene, Trajectory, shapes, simulate

STIFF = (1e9, 1e9, 1e9)  # an inertia that keeps a slider from turning


def slider(
    h: float, stepper: str, *, angle: float = 0.0, frame: str | None = None, attached: bool = False
) -> Trajectory:
    """A slider at (2, 1.5) m/s, e_t = 1, e_o = 0.5; the whole scene turned by `angle` degrees about z.

    The direction t is given in the world, or in the axes of `frame` (attached), which is then the
    body that carries the turn.
    """
    turn = turned((0, 0, 1), angle)
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add(
        "ground", shapes.halfspace((0, 0, 1)), fixed=True, orientation=turn if frame == "ground" else None
    )
    scene.add(
        "body",
        shapes.sphere(0.1),
        mass=1.0,
        inertia=STIFF,
        position=(0, 0, 0.1),
        orientation=turn if frame == "body" else None,
        velocity=(2 * c - 1.5 * s, 2 * s + 1.5 * c, 0),
    )
    scene.friction(mu=0.3, e_t=1.0, e_o=0.5, direction=(1, 0, 0) if attached else (c, s, 0), frame=frame)
    return simulate(scene, duration=0.4, step=h, stepper=stepper)


def off_the_curve(h: float, stepper: str) -> float:
    """How far from v_o/v_o0 = (v_t/v_t0)^(e_o^2/e_t^2) the slider is after 0.4 s."""
    v = slider(h, stepper)["body"].velocity[-1]
    assert 0.2 < v[0] / 2 < 0.7
    return float(abs(v[1] / 1.5 - (v[0] / 2) ** 0.25))


@pytest.mark.parametrize(
    ("stepper", "least", "most", "largest"),
    [("implicit-euler", 0.9, 1.1, 1e-3), ("implicit-rattle", 1.95, 2.05, 1e-6)],
)
def test_anisotropic_slider_follows_its_curve(
    stepper: str, least: float, most: float, largest: float
) -> None:
    """v_o/v_o0 = (v_t/v_t0)^(e_o^2/e_t^2): first order in h for Euler, second for RATTLE (measured 2.000)."""
    order = measured_order([0.02, 0.01, 0.005, 0.0025], lambda h: off_the_curve(h, stepper))
    assert least < order < most
    assert off_the_curve(0.001, stepper) < largest


def test_anisotropic_slider_to_fourth_order() -> None:
    """The composed step follows the curve to order four (above 3.8), every step of it composed."""
    order = measured_order([0.04, 0.02, 0.01], lambda h: off_the_curve(h, "implicit-rattle-4"))
    assert 3.8 < order < 4.3
    assert set(slider(0.02, "implicit-rattle-4").steps["form"]) == {"rattle-4"}


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("frame", ["ground", "body"])
def test_direction_attached_to_a_body(frame: str, stepper: str) -> None:
    """With t attached to the fixed or to the moving body, turning that body turns the motion (1e-9)."""
    plain = slider(0.01, stepper)["body"]
    c, s = np.cos(np.radians(35)), np.sin(np.radians(35))
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    for given in ({"frame": frame, "attached": True}, {}):
        run = slider(0.01, stepper, angle=35, **given)
        np.testing.assert_allclose(run["body"].velocity, plain.velocity @ turn.T, rtol=0, atol=1e-9)
    # negative control: the direction matters
    other = slider(0.01, stepper, angle=35, frame=frame)
    assert np.abs(other["body"].velocity - plain.velocity @ turn.T).max() > 1e-2


@pytest.mark.parametrize("stepper", STEPPERS)
def test_direction_turns_with_a_turning_body(stepper: str) -> None:
    """A slider that turns by itself carries t along: at once, t lies along its axis at every step."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "body", shapes.sphere(0.1), mass=1.0, inertia=STIFF, position=(0, 0, 0.1), velocity=(2, 0, 0),
        angular_velocity=(0, 0, 3),
    )  # fmt: skip
    scene.friction(mu=0.3, e_o=0.5, direction=(1, 0, 0), frame="body")
    run = simulate(scene, duration=0.3, step=0.01, stepper=stepper)
    angle = 3 * run.time[1:]
    expected = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    np.testing.assert_allclose(run.contacts["tangent"], expected, atol=1e-9)
    assert np.abs(run["body"].velocity[-1, 1]) > 0.01


def tumbling(law: dict[str, Any], stepper: str) -> Trajectory:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "low", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.31), velocity=(1, 0.5, 0),
        angular_velocity=(1, 2, 3),
    )  # fmt: skip
    scene.add("high", shapes.ellipsoid(0.3, 0.4, 0.3), mass=2.0, position=(0.1, 0, 0.95), velocity=(0, 1, 0))
    scene.friction(mu=0.4, e_r=0.02, **law)
    return simulate(scene, duration=0.5, step=0.01, stepper=stepper)


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize(
    "law", [{"direction": (1, 0, 0)}, {"direction": (1, 2, 3)}, {"direction": (0, 1, 0.3), "frame": "low"}]
)
def test_isotropic_friction_has_no_frame(law: dict[str, Any], stepper: str) -> None:
    """With e_t = e_o the motion of two tumbling bodies does not depend on the tangent frame (1e-9)."""
    plain, run = tumbling({}, stepper), tumbling(law, stepper)
    assert set(plain.contacts["second"]) == {"low", "high"}
    for name in ("low", "high"):
        np.testing.assert_allclose(run[name].position, plain[name].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run[name].velocity, plain[name].velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            run[name].angular_velocity, plain[name].angular_velocity, rtol=0, atol=1e-8
        )
    assert np.abs(run.contacts["tangent"] - plain.contacts["tangent"]).max() > 0.1
