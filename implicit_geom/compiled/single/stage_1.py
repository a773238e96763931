"""Stage 1 of RATTLE, or Euler's step, for one body in one contact: rows and a Newton step, as expressions."""

from __future__ import annotations

import casadi as ca

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions import support_map
from implicit_geom.compiled.functions.body import body_functions
from implicit_geom.compiled.functions.rotation_vector import (
    inverse_tangent_derivative,
    inverse_tangent_product,
    symmetric_product,
    tangent_product,
)
from implicit_geom.compiled.single.contact import SingleContact
from implicit_geom.compiled.structs import StructSymbol
from implicit_geom.equations.friction_law import contact_law_rows
from implicit_geom.machine import small_systems

MEASURES = 3  # of a point: largest row over its tolerance, largest row, norm of all rows


class StageOne:
    """Stage 1, or Euler's step, as expressions of z = (w, P).

    R is the orientation at the end of the step, rho the closest point there, from the centre of mass.
    """

    def __init__(
        self,
        contact: SingleContact,
        z: ca.SX,
        parameters: ca.SX,
        momentum: ca.SX,
        inverse_mass: ca.SX,
        multiplier_factor: ca.SX,
    ) -> None:
        self.contact, self.z, self.parameters, self.momentum = contact, z, parameters, momentum
        self.inverse_mass = inverse_mass
        self.values = StructSymbol(structs.parameters(contact.kind), parameters)
        self.h, self.w, self.P = self.values["h"], z[: contact.spins], z[contact.spins :]
        self.R = contact.pair.rotated(self.w, self.h, self.values.matrix("R2"))
        self.n = self.values.matrix("R1") @ self.values["theta1"][: contact.dim]
        shape, theta, down = contact.kind.second, self.values["theta2"], -(self.R.T @ self.n)
        point = support_map.support(shape, theta, down)
        self.rho = self.R @ (point - self.values["com2"])
        k = multiplier_factor * support_map.support_value(shape, theta, down)
        self.down = down
        seen = self._seen(self.R, self.rho)
        self.nu, self.moment = seen["nu"], seen["moment"]
        self.unknowns = ca.vertcat(self.nu, self.rho * (1 / self.values["L"]), k, self.P)

    def _seen(self, R: ca.SX, rho: ca.SX) -> dict[str, ca.SX]:
        """nu, gap, mean slip and what is gained of angular momentum without reason."""
        contact, at = self.contact, body_functions(self.contact.dim).momentum.at
        found = contact.equations
        own = ca.vertcat(rho * (1 / self.values["L"]), 0, self.P)
        symbols = [found.symbols.nu[1], found.symbols.u, found.symbols.parameters, contact.end_rotation]
        names = ("p_n", "p_f", "n", "t", "o", "r2")
        still = ca.SX.zeros(symbols[0].shape)
        pushed = ca.substitute([found.report[x] for x in names], symbols, [still, own, self.parameters, R])
        force, moment = contact.wrench(dict(zip(names, pushed, strict=True)))
        nu = ca.vertcat(self.momentum[at["v_free"]] + self.inverse_mass * force, self.w)
        slip = "mean_slip" if contact.rattle else "slip"
        gap, slip = ca.substitute(
            [found.report["gap"], found.report[slip]], symbols, [nu, own, self.parameters, R]
        )
        return {"nu": nu, "gap": gap, "slip": slip, "balance": self._balance(R) - moment, "moment": moment}

    def kicked(self, derived: ca.SX) -> ca.SX:
        """The velocities after stage 1's kick: M^-1 of the momentum at the start with that of the contact."""
        contact, at = self.contact, body_functions(self.contact.dim).momentum.at
        if contact.dim == 2:
            return self.nu
        inverse = StructSymbol(structs.derived(3), derived).matrix("inverse_inertia")
        return ca.vertcat(self.nu[:3], inverse @ (self.momentum[at["momentum"]] + self.moment))

    def _balance(self, R: ca.SX) -> ca.SX:
        """Angular momentum gained [C07, eq. 4, with the deviation of `equations.momentum`]."""
        p, at = self.momentum, body_functions(self.contact.dim).momentum.at
        if self.contact.dim == 2:
            # J = m gyration^2
            return (self.w - p[at["w_free"]]) * p[at["gyration"]] ** 2 / self.inverse_mass
        J = ca.reshape(p[at["J"]], 3, 3)
        if not self.contact.rattle:
            return R @ (J @ (R.T @ self.w)) - p[at["momentum"]]
        start = ca.reshape(p[at["R"]], 3, 3)
        return (
            inverse_tangent_product(self.h * self.w, symmetric_product(start, J) @ self.w) - p[at["momentum"]]
        )

    def _linear(self, x: ca.SX) -> ca.SX:
        """x written as x(P = 0) + x_P P where it is linear in P: x_P is then known before the solve."""
        by_P = ca.jacobian(x, self.P)
        if any(ca.which_depends(by_P, self.P)) if by_P.nnz() else True:
            return x
        return ca.substitute(x, self.P, ca.SX.zeros(self.P.shape)) + ca.densify(by_P) @ self.P

    def _balance_by_w(self) -> ca.SX | None:
        """The derivative of what stage 1 gains by w, where that of CasADi takes many more operations."""
        if self.contact.dim == 2 or not self.contact.rattle:
            return None
        p, at = self.momentum, body_functions(3).momentum.at
        start, J = ca.reshape(p[at["R"]], 3, 3), ca.reshape(p[at["J"]], 3, 3)
        return inverse_tangent_derivative(self.w, self.h, symmetric_product(start, J))

    def _opposed(self, gap: ca.SX, slip: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(D, w) that the laws set against the impulses, and its derivative by (gap, slip), a diagonal."""
        p, factor = self.values, self.values["e"]
        begin = ca.SX.zeros(slip.shape)
        if self.contact.rattle and self.contact.kind.components:
            found, lags = self.contact.equations, p["lag"] > 0
            (begin,) = ca.substitute(
                [found.report["start_slip"]], [found.symbols.parameters], [self.parameters]
            )
            begin = ca.if_else(lags, p["e"] * begin, 0)
            factor = ca.if_else(lags, 0, ca.sign(self.h)) * p["e"]
        by = ca.vertcat(1 / ca.fabs(self.h), factor)
        return by * ca.vertcat(gap, slip) + ca.vertcat(0, begin), by

    def _laws(self, y: ca.SX) -> ca.SX:
        """Signorini's condition and the friction law [C07, eqs. 3 to 5], see `equations.friction_law`."""
        p, P = self.values, self.P
        form, none = self.contact.kind.friction, ca.SX(0, 1)
        return contact_law_rows(form, P[0], P[1:], none, y[0], y[1:], p["mu"], p["U"], None).rows / p["U"]

    def newton(self, tolerance: ca.SX, law_tolerances: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The next point, and the measures of this one.

        A turn phi of R moves rho by phi x rho + R S' R^T (phi x n), S' the derivative of the support map; the
        gap does not feel the second part. h dw turns R by T h dw.
        """
        contact, s, n = self.contact, self.contact.spins, self.contact.impulses
        R, phi = ca.SX.sym("R", contact.dim, contact.dim), ca.SX.sym("phi", s)
        rho, y = ca.SX.sym("rho", contact.dim), ca.SX.sym("y", n)
        seen = self._seen(R + _small_turn(phi) @ R, rho)
        laws = self._laws(y)
        here = [[R, phi, rho], [self.R, ca.SX.zeros(s), self.rho]]

        def derivatives(x: ca.SX, *, slides: bool, by_w: ca.SX | None = None) -> list[ca.SX]:
            """x, and its derivatives by w and P; `slides`: where rho is in the body matters."""
            by_w = ca.jacobian(x, self.w) if by_w is None else by_w
            parts = [self._linear(x), ca.densify(by_w), ca.densify(ca.jacobian(x, self.P))]
            parts += [ca.jacobian(x, phi), ca.jacobian(x, rho)]
            value, by_w, by_P, by_phi, g = ca.substitute(parts, *here)
            turned = by_phi + g @ _turning(self.rho)
            if slides and g.nnz():
                shape, theta = contact.kind.second, self.values["theta2"]
                along = support_map.derivative(shape, theta, self.down, g @ self.R)
                turned += (along @ self.R.T) @ _turning(self.n)
            if turned.nnz():
                by_w += tangent_product(turned, self.h, self.w) if contact.dim == 3 else self.h * turned
            return [value, by_w, by_P]

        gap, gap_w, gap_P = derivatives(seen["gap"], slides=False)
        slip, slip_w, slip_P = derivatives(seen["slip"], slides=True)
        G, A, B = derivatives(seen["balance"], slides=True, by_w=self._balance_by_w())
        opposed, by = self._opposed(gap, slip)
        y_w, y_P = (ca.diag(by) @ ca.vertcat(*each) for each in ((gap_w, slip_w), (gap_P, slip_P)))
        parts = [laws, ca.jacobian(laws, y), ca.jacobian(laws, self.P)]
        F, by_y, by_P = ca.substitute(parts, [y], [opposed])
        X = small_systems.solve(A, ca.horzcat(B, -G))
        S = by_P + by_y @ (y_P - y_w @ X[:, :-1])
        dP = small_systems.solve(ca.densify(S), -F - by_y @ (y_w @ X[:, -1]))
        dw = X[:, -1] - X[:, :-1] @ dP
        turn = ca.fabs(self.h) * ca.sqrt(ca.sumsqr(dw))  # shortened as in `contact.step_ncp`
        step = self.z + ca.vertcat(dw / ca.fmax(turn, 1), dP)
        scaled = ca.reshape(self.values["weight2"][1:], s, s) @ G
        tolerances = ca.vertcat(ca.repmat(tolerance, s, 1), law_tolerances)
        return step, measures(ca.vertcat(scaled, F), tolerances)


def _small_turn(phi: ca.SX) -> ca.SX:
    """[phi]x."""
    return ca.skew(phi) if phi.numel() == 3 else ca.vertcat(ca.horzcat(0, -phi), ca.horzcat(phi, 0))


def _turning(r: ca.SX) -> ca.SX:
    """The matrix that takes phi to phi x r."""
    return -ca.skew(r) if r.numel() == 3 else ca.vertcat(-r[1], r[0])


def measures(F: ca.SX, tolerances: ca.SX) -> ca.SX:
    """Largest row over its tolerance, largest row, norm."""
    size = ca.fabs(F)
    return ca.vertcat(ca.mmax(size * (1 / tolerances)), ca.mmax(size), ca.sqrt(ca.sumsqr(F)))
