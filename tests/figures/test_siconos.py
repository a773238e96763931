"""Siconos as a peer: its energy error on the rolling ellipsoid as known, a ball against its closed form."""

import numpy as np
import pytest

from implicit_geom import Scene, shapes
from implicit_geom.experiments import ellipsoid_rolling
from implicit_geom.experiments.peers import SOURCES, PeerRun, RollingBody, energy, installed, siconos_peer
from implicit_geom.experiments.peers.siconos_peer import Setting

needed = pytest.mark.skipif(
    "siconos" not in installed(), reason=f"siconos is not installed ({SOURCES['siconos']})"
)
SOLVED = Setting(tolerance=1e-10)
G = 9.81


def thrown(speed: float, mu: float) -> RollingBody:
    """A ball of radius 0.1 m that slides along (0.6, 0.8, 0) without spin."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    start = {"position": (0, 0, 0.1), "velocity": (0.6 * speed, 0.8 * speed, 0)}
    scene.add("body", shapes.ellipsoid(0.1, 0.1, 0.1), mass=2.0, **start)
    scene.friction(mu=mu)
    return RollingBody.of(scene)


@needed
@pytest.mark.parametrize(("h", "expected"), [(0.01, 0.36), (0.001, 0.040), (0.0001, 0.0040)])
def test_energy_error_of_the_rolling_ellipsoid(h: float, expected: float) -> None:
    """theta = 0.5, over 5 s: the largest error relative to the energy above rest, as measured elsewhere."""
    body = RollingBody.of(ellipsoid_rolling.scene())
    E = energy(body, siconos_peer.simulate(body, duration=5.0, step=h, setting=SOLVED))
    largest = np.max(np.abs(E - E[0])) / (E[0] - body.least_potential)
    assert largest == pytest.approx(expected, rel=0.02)


@needed
@pytest.mark.parametrize("setting", siconos_peer.settings().values(), ids=siconos_peer.settings())
def test_a_ball_slides_and_then_rolls(setting: Setting) -> None:
    """Speed v - mu g t until 2 v / (7 mu g), 5/7 v after it; straight on, and on the plane.

    Siconos takes a contact for open whose gap is above zero by rounding, so that the ball may fall for one
    step: by g h^2, as the law is one of velocities.
    """
    speed, mu, h = 1.0, 0.2, 1e-3
    body = thrown(speed, mu)
    run = siconos_peer.simulate(body, duration=0.4, step=h, setting=setting)
    along, across = np.array([0.6, 0.8, 0]), np.array([-0.8, 0.6, 0])
    rolls = 2 * speed / (7 * mu * G)
    expected = np.where(run.time < rolls, speed - mu * G * run.time, 5 * speed / 7)
    np.testing.assert_allclose(run.velocity @ along, expected, atol=mu * G * h)
    np.testing.assert_allclose(run.position @ across, 0, atol=1e-9)
    np.testing.assert_allclose(run.position[:, 2], 0.1, atol=1.001 * G * h**2)
    rolled = run.time > rolls + h
    np.testing.assert_allclose(0.1 * (run.angular_velocity @ across)[rolled], 5 / 7 * speed, atol=1e-3)
    met = rolls * (speed - mu * G * rolls / 2) + (0.4 - rolls) * 5 / 7 * speed
    assert run.position[-1] @ along == pytest.approx(met, abs=h * speed)


@needed
def test_pieces_are_those_of_one_motion() -> None:
    """Times are asked piece by piece; the states do not depend on the pieces."""
    body = thrown(1.0, 0.2)
    seconds = siconos_peer.stepping(body, 1e-3, SOLVED)(np.array([7, 2, 11]))
    assert seconds.shape == (3,)
    assert np.all(seconds > 0)
    by_step, at_once = (
        siconos_peer.simulate(body, duration=0.02, step=1e-3, setting=SOLVED, record=record)
        for record in (True, False)
    )
    assert isinstance(by_step, PeerRun)
    np.testing.assert_array_equal(by_step.position[[0, -1]], at_once.position)


@needed
def test_what_is_wrong_is_said() -> None:
    with pytest.raises(RuntimeError, match="a problem and its pieces"):
        siconos_peer._child().run(np.ones(3), np.ones(2))
    assert siconos_peer.release()[0].isdigit()


def test_absent_without_headers_or_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siconos_peer, "compiler", lambda: None)
    assert not siconos_peer.present()
    with pytest.raises(RuntimeError, match="compiler"):
        siconos_peer.program()
