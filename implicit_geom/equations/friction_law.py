"""Contact laws as residual rows: Signorini's condition and the friction ellipsoid [C07, eqs. 3, 5, 11].

In scaled quantities, with E = diag(e_t, e_o, e_r),

    S = E^-1 p / m_c      scaled friction impulse, m/s
    w = E v               scaled slip, m/s

the friction law reads: S lies in the ball of radius mu P_n, and S = -mu P_n w/|w| where w != 0.
It is maximum dissipation over the ellipsoid (p_t/e_t)^2 + (p_o/e_o)^2 + (p_r/e_r)^2 <= (mu p_n)^2, the last
row of [C07, eq. 4]; C07 (5) are its Fritz-John conditions, and C07 (11) the two complementarities

    0 <= p_n _|_ gap >= 0,     0 <= sigma _|_ zeta = (mu p_n)^2 - sum (p_i/e_i)^2 >= 0

The three forms below have the same solutions: the projection on the ball, C07's own, and T10's.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from implicit_geom.equations import complementarity as cc


@dataclass(frozen=True)
class ContactLaw:
    """Impulses over effective mass, and the rows that must vanish; all in m/s."""

    P_n: ca.SX
    S: ca.SX
    rows: ca.SX


def contact_law_rows(
    form: str,
    normal: ca.SX,
    friction: ca.SX,
    sigma: ca.SX,
    D: ca.SX,
    w: ca.SX,
    mu: ca.SX,
    U: ca.SX,
    eps: ca.SX | None,
) -> ContactLaw:
    """The rows of 0 <= P_n _|_ D >= 0 [C07, eq. 3] and of friction [C07, eqs. 5, 11] in one of three forms.

    D = gap over step, w = E v; `form` is projection, fritz-john or implicit.
    """
    if form == "implicit":
        return _implicit(normal, friction, D, w, mu, eps)
    normal_row = normal - cc.plus(normal - D, eps)
    if w.numel() == 0:
        return ContactLaw(normal, friction, normal_row)
    if form == "projection":
        # (the radius is not smoothed: a contact that is open must stay without friction)
        radius = mu * cc.plus(normal, None)
        return ContactLaw(
            normal, friction, ca.vertcat(normal_row, friction - cc.ball(friction - w, radius, eps))
        )
    rows = _fritz_john(normal, friction, sigma, w, mu, U, eps)
    return ContactLaw(normal, friction, ca.vertcat(normal_row, rows))


def _fritz_john(
    P_n: ca.SX, S: ca.SX, sigma: ca.SX, w: ca.SX, mu: ca.SX, U: ca.SX, eps: ca.SX | None
) -> ca.SX:
    """[C07, eqs. 5, 11] over E and m_c: mu P_n w + S sigma = 0, 0 <= sigma _|_ zeta = (mu P_n)^2 - S.S >= 0.

    The first rows are quadratic in velocities; over U they are velocities again. Singular at
    P_n = 0, sigma = 0, where S is free: the Newton core falls back to minimum-norm steps there.
    """
    zeta = (mu**2 * P_n**2 - ca.sumsqr(S)) / U
    small = cc.TINY if eps is None else 2 * eps**2
    fischer_burmeister = sigma + zeta - ca.sqrt(sigma**2 + zeta**2 + small)
    return ca.vertcat((mu * P_n * w + S * sigma) / U, fischer_burmeister)


def _implicit(x_n: ca.SX, x_f: ca.SX, D: ca.SX, w: ca.SX, mu: ca.SX, eps: ca.SX | None) -> ContactLaw:
    """[T10, eqs. 10, 12 to 14]: impulse and velocity both as functions of x, with complementarity built in.

    Deviation: x has the opposite sign here, so that it is the impulse where the contact sticks.

    P_n(x) = max(x_n, 0), D(x) = max(-x_n, 0); S(x) is x_f projected on the ball of radius mu P_n and
    w(x) = S(x) - x_f. The rows say that the motion has the velocities that x prescribes.
    """
    P_n = cc.plus(x_n, eps)
    normal_row = D - (P_n - x_n)
    if w.numel() == 0:
        return ContactLaw(P_n, x_f, normal_row)
    S = cc.ball(x_f, mu * P_n, eps)
    return ContactLaw(P_n, S, ca.vertcat(normal_row, w - (S - x_f)))
