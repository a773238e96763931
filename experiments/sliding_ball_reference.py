"""References for a ball that slides on a plane until it rolls: closed forms, and states kept in files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.experiments.references import reference


@dataclass(frozen=True)
class Case:
    """A reference, until when it is followed (s), and when all slip ends (s)."""

    file: str
    row: int
    end: float

    @property
    def exact(self) -> dict[str, Any]:
        return reference(self.file)["cases"][self.row]

    @property
    def stop(self) -> float:
        return float(self.exact.get("t_roll", self.exact.get("t_stop_slip")))

    @property
    def grip(self) -> float:
        """The deceleration mu g of a ball that slides without spinning, m/s^2."""
        return float(self.exact["inputs"]["mu"] * self.exact["inputs"]["g"])


CASES = {
    "slide": Case("sphere_sliding", 0, 0.5),
    "backspin": Case("sphere_sliding", 1, 2.0),
    "slide and spin": Case("torsional_friction", 1, 3.0),
}
STRAIGHT = ("slide", "backspin")  # without torsional friction, known in closed form


def table_key(case: str) -> str:
    """The name of a case in the names of tables."""
    return case.replace(" ", "_")


def sliding(inputs: dict[str, Any], times: np.ndarray) -> dict[str, np.ndarray]:
    """A ball without torsional friction whose slip keeps its direction d, in closed form, slide and roll.

    The slip s = v + omega x (-r e_z) falls by mu g (1 + m r^2 / J) until it is 0 at t_roll; then v stays:

        tau = min(t, t_roll),   v = v_0 - mu g tau d,   omega = omega_0 + (m mu g r / J) tau (e_z x d)

    Rotation by the integral of omega: its axis must not change (omega_0 along e_z x d).
    """
    v0, w0, r = np.array(inputs["v0"], float), np.array(inputs["omega0"], float), inputs["r"]
    up, grip = np.array([0.0, 0.0, 1.0]), inputs["mu"] * inputs["g"]
    slip = v0 - r * np.cross(w0, up)
    d = slip / np.linalg.norm(slip)
    gain = inputs["m"] * r / inputs["I"]
    t_roll = np.linalg.norm(slip) / (grip * (1 + gain * r))
    t = np.asarray(times, float)[:, None]
    tau = np.minimum(t, t_roll)
    area = tau**2 / 2 + tau * (t - tau)  # the integral of tau
    about = gain * grip * np.cross(up, d)
    turned = rotation.exp(w0 * t + about * area)
    return {
        "t": t[:, 0],
        "x": np.array(inputs["x0"], float) + v0 * t - grip * d * area,
        "q": rotation.multiply(turned, np.array(inputs["q0"], float)),
        "v": v0 - grip * d * tau,
        "omega": w0 + about * tau,
    }


def exact_states(case: Case, times: np.ndarray) -> dict[str, np.ndarray]:
    """x, v and omega (T, 3) at those times, NaN where the reference does not know them.

    A ball that only slides is known in closed form; one that spins as well at the reference's own
    times and, rolling straight on, from the end of its slip.
    """
    if case.file == "sphere_sliding":
        return sliding(case.exact["inputs"], times)
    exact, states = case.exact, case.exact["states"]
    t = np.asarray(times, float)
    out = {name: np.full((len(t), 3), np.nan) for name in ("x", "v", "omega")}
    for i, at in enumerate(states["t"]):
        for name, values in out.items():
            values[np.abs(t - at) < 1e-9] = states[name][i]
    rolls = t >= case.stop
    v = np.array(exact["v_final"])
    stop = np.append(exact["x_at_stop"], exact["inputs"]["r"])
    out["x"][rolls] = stop + v * (t[rolls, None] - case.stop)
    out["v"][rolls], out["omega"][rolls] = v, exact["omega_final"]
    return out
