"""The closed forms obey the laws they state, and agree where the laws do."""

import numpy as np
import pytest

from implicit_geom.experiments.impact_law import LAWS, coulomb, energetic, gain, newton, poisson

SEEDS = range(60)


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """W, u, mu and e of a body that is struck somewhere, in the plane or in space."""
    rng = np.random.default_rng(seed)
    dim = 2 + seed % 2
    A = rng.standard_normal((dim, dim))
    u = rng.standard_normal(dim)
    u[0] = -abs(u[0]) - 0.1
    return A @ A.T + 0.5 * np.eye(dim), u, (0.0, 0.3, 0.8)[seed // 2 % 3], (0.0, 0.5, 1.0)[seed // 6 % 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_coulomb_holds_for_the_whole_impulse(seed: int) -> None:
    W, u, mu, e = draw(seed)
    p, s = newton(W, u, mu, e).p, newton(W, u, mu, e).factor
    after = u + W @ p
    assert after[0] == pytest.approx(-s * e * u[0], abs=1e-12)
    pull, slip = np.linalg.norm(p[1:]), np.linalg.norm(after[1:])
    assert pull <= mu * p[0] * (1 + 1e-12)
    if slip > 1e-9:
        np.testing.assert_allclose(p[1:] * slip, -mu * p[0] * after[1:], atol=1e-9 * (1 + slip))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_gained(seed: int) -> None:
    W, u, mu, e = draw(seed)
    scale = u @ np.linalg.solve(W, u) / 2
    for law in LAWS.values():
        assert gain(W, u, law(W, u, mu, e).p) <= 1e-11 * scale
    if e == 1 and mu == 0:
        assert abs(gain(W, u, newton(W, u, mu, e).p)) < 1e-12 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_the_energetic_law_states_a_share_of_normal_work(seed: int) -> None:
    """Compression ends at rest: its work is p_c u / 2, that of decompression p_d u+ / 2, all normal parts."""
    W, u, mu, e = draw(seed)
    p = energetic(W, u, mu, e)
    (p_c,) = coulomb(W, u, mu, 0.0)
    returned, wanted = (p.p - p_c)[0] * (u + W @ p.p)[0], -(e**2) * p_c[0] * u[0]
    if returned < wanted - 1e-9:  # it would have gained energy
        assert gain(W, u, p.p) == pytest.approx(0, abs=1e-10)
    else:
        assert returned == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_laws_agree_without_friction_and_without_restitution(seed: int) -> None:
    W, u, mu, e = draw(seed)
    for share, friction in ((e, 0.0), (0.0, mu)):
        impulses = [law(W, u, friction, share).p for law in LAWS.values()]
        np.testing.assert_allclose(impulses, [impulses[0]] * 3, atol=1e-10 * np.linalg.norm(impulses[0]))


def test_poisson_returns_a_share_of_the_normal_impulse() -> None:
    W, u, mu, e = draw(28)
    (p_c,) = coulomb(W, u, mu, 0.0)
    assert mu > 0
    assert e > 0
    assert poisson(W, u, mu, e).p[0] == pytest.approx((1 + e) * p_c[0])


def test_newton_with_friction_gains_energy() -> None:
    """Kane and Levinson's case, a rod that strikes while its end moves along: by the law itself."""
    angle, mu, e = np.radians(40), 0.6, 1.0  # from the horizontal
    arm = np.array([-np.cos(angle), np.sin(angle)]) / 2  # of the lower end of a rod of 1 m and 1 kg: n, t
    W, u = np.eye(2) + 12 * np.outer(arm, arm), np.array([-1.0, 0.3])
    (p,) = coulomb(W, u, mu, e)
    assert gain(W, u, p) > 0.05
    np.testing.assert_array_equal(newton(W, u, mu, e).p, p)


def test_the_energetic_law_may_gain_where_the_slip_reverses() -> None:
    """A rod at 45 degrees: friction of a phase against the slip at its end would gain 0.1 of the energy."""
    arm = np.array([-1.0, 1.0]) * np.sqrt(0.5) / 2
    W, u = np.eye(2) + 12 * np.outer(arm, arm), np.array([-1.0, 0.3])
    found = energetic(W, u, 0.6, 1.0)
    (p_c,) = coulomb(W, u, 0.6, 0.0)
    assert (found.p - p_c)[0] * (u + W @ found.p)[0] < -0.99 * p_c[0] * u[0]
    assert gain(W, u, found.p) == pytest.approx(0, abs=1e-11)


def test_a_ball_that_slides_and_one_that_sticks() -> None:
    """W of a uniform ball is 1 along the normal and 7/2 across, over its mass."""
    W = np.diag([1.0, 3.5, 3.5])
    u = np.array([-2.0, 0.6, 0.8])
    np.testing.assert_allclose(newton(W, u, 0.05, 0.5).p, [3.0, -0.05 * 3 * 0.6, -0.05 * 3 * 0.8], atol=1e-13)
    np.testing.assert_allclose(newton(W, u, 1.0, 0.5).p, [3.0, -0.6 / 3.5, -0.8 / 3.5], atol=1e-13)
