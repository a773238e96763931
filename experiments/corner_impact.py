"""A rectangle strikes with a corner, a rod with its end: three impact laws, at every phase of the step.

There is no gravity, so that the state before the impact is the one that was given, and the velocities after
it follow from the laws of `impact_law` in closed form. The start is moved back along the path so that the
impact falls at twenty phases of a step; the answer must not depend on it.

Rectangle, mu = 0.3, e = 0, 0.5 and 1: the spin after the impact. Steppers that divide the impulse among two
steps, or two stages with friction laws of their own, break Coulomb's law for the whole impulse: their
answer changes with the phase, by the same amount however small the step. `implicit-euler` and the classical
steppers are shown beside it for e = 0, which is all that the classical ones know.

Rod, mu = 0.6, e = 1, struck at many angles: by Newton's law the energy grows (Kane and Levinson 1985), by
up to 0.4 of what the contact has. Poisson's law takes a share of the impulse, the energetic one (Stronge
1990) a share of the work of the normal force; in a continuous compression that can never gain, but here
each of the two phases has one friction, against the slip at its end. Where the energetic law would gain
energy, its restitution is reduced until it does not.

T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill 1985. W. J. Stronge, Rigid body
collisions with friction, Proceedings of the Royal Society A 431 (1990) 169-181; Impact Mechanics, Cambridge
2000.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.event_driven import Body, State
from implicit_geom.experiments.figures import (
    BLUE,
    GREEN,
    ORANGE,
    PAGE,
    PURPLE,
    RED,
    label,
    panels,
    paper,
)
from implicit_geom.experiments.impact_law import LAWS
from implicit_geom.experiments.impact_runs import end_of, through

TITLE = "a corner strikes: spin after the impact at every phase of the step, by three impact laws"
PARAMS: dict[str, Any] = {
    "steps": (1e-2, 1e-3),
    "phases": 20,
    "steppers": (
        "implicit-rattle",
        "implicit-rattle-4",
        "implicit-euler",
        "stewart-trinkle",
        "anitescu-hart",
    ),
    "angles": 35,
}
QUICK: dict[str, Any] = {
    "phases": 3,
    "steppers": ("implicit-rattle", "implicit-rattle-4", "implicit-euler", "stewart-trinkle"),
    "angles": 5,
}

RECTANGLE = Body(shapes.rectangle(0.3, 0.2), mu=0.3, gravity=0.0)
ROD = Body(shapes.rectangle(0.5, 0.001), mu=0.6, e=1.0, gravity=0.0)
RESTITUTIONS = (0.0, 0.5, 1.0)
LAWFUL = ("implicit-rattle", "implicit-rattle-4")
BEFORE, AFTER = 5, 3  # whole steps on both sides of the impact's own
CLOSE, SPREAD = 1e-3, 1e-6  # relative error, and spread over the phases
NOTHING = 1e-9  # gain of energy, over that of the contact
KANE = 0.1  # the same that Newton's law makes at some angle


def touching(body: Body, angle: float, v: tuple[float, float], w: float) -> State:
    """Turned by `angle`, its lowest point at height zero."""
    s = State(0.0, np.zeros(2), np.array(angle), np.array(v), np.array([w]))
    return replace(s, x=np.array([0.0, -body.lowest(s)[0]]))


def back(s: State, time: float) -> State:
    """Earlier on the same straight path."""
    return replace(s, x=s.x - time * s.v, q=s.q - time * s.w[0])


STRUCK = touching(RECTANGLE, 0.5, (0.4, -1.0), 0.7)


def rod_at(angle: float) -> State:
    """The end moves downwards with 1 m/s and forwards with 0.3 m/s, the rod does not turn."""
    return touching(ROD, angle, (0.3, -1.0), 0.0)


def run(params: dict[str, Any]) -> dict[str, Table]:
    phases = (np.arange(params["phases"]) + 0.5) / params["phases"]
    rows = []
    for stepper in params["steppers"]:
        for law in LAWS if stepper in LAWFUL else ("newton",):
            for e in RESTITUTIONS if stepper in LAWFUL else (0.0,):
                body = replace(RECTANGLE, e=e, law=law)
                exact = float(body.struck(STRUCK).after.w[0])
                for h in params["steps"]:
                    for phase in phases:
                        spin = _spin_after(body, STRUCK, phase, h, stepper)
                        rows.append((stepper, law, e, h, phase, spin, exact))
    names = ("stepper", "law", "e", "step", "phase", "spin", "exact")
    return {"spin": columns(names, rows), "rod": _rod(params)}


def _spin_after(body: Body, struck: State, phase: float, h: float, stepper: str) -> float:
    start = back(struck, (BEFORE + phase) * h)
    return float(end_of(through(body, start, (BEFORE + 1 + AFTER) * h, h, stepper)).w[0])


def _rod(params: dict[str, Any]) -> Table:
    """Energy gained over that of the contact, u . W^-1 u / 2: closed form, and as stepped."""
    h, rows = params["steps"][-1], []
    for angle in np.radians(np.linspace(2, 88, params["angles"])):
        struck = rod_at(angle)
        W, u = ROD.contact(struck, ROD.lowest(struck)[1])
        scale = u @ np.linalg.solve(W, u) / 2
        for law in LAWS:
            body = replace(ROD, law=law)
            impact = body.struck(struck)
            end = end_of(through(body, back(struck, (BEFORE + 0.5) * h), (BEFORE + 1) * h, h))
            exact = (body.energy(impact.after) - body.energy(struck)) / scale
            found = (body.energy(end) - body.energy(struck)) / scale
            off = abs(float(end.w[0]) / float(impact.after.w[0]) - 1)
            rows.append((law, np.degrees(angle), exact, found, off, impact.impulse.factor))
    return columns(("law", "angle", "exact", "gain", "error", "factor"), rows)


def check(tables: dict[str, Table]) -> list[Check]:
    spin, rod, checks = tables["spin"], tables["rod"], []
    for stepper in LAWFUL:
        for law in LAWS:
            rows = (spin["stepper"] == stepper) & (spin["law"] == law) & (spin["step"] == 1e-3)
            off = np.max(np.abs(spin["spin"] / spin["exact"] - 1)[rows])
            apart = max(np.ptp(spin["spin"][rows & (spin["e"] == e)]) for e in RESTITUTIONS)
            words = f"{stepper}, {law}, h = 1e-3: spin after the impact"
            checks.append(at_most(f"{words}, relative error, any phase", off, CLOSE))
            checks.append(at_most(f"{words}, spread over the phases", apart, SPREAD, "rad/s"))
    for law in LAWS:
        rows = rod["law"] == law
        checks.append(at_most(f"rod, {law}: spin, relative error", np.max(rod["error"][rows]), CLOSE))
        apart = np.max(np.abs(rod["gain"] - rod["exact"])[rows])
        checks.append(at_most(f"rod, {law}: gain of energy, off its closed form", apart, NOTHING))
    rows = rod["law"] == "energetic"
    checks.append(at_most("rod, energetic: largest gain of energy", np.max(rod["gain"][rows]), NOTHING))
    rows = rod["law"] == "newton"
    checks.append(at_least("rod, newton: largest gain of energy", np.max(rod["gain"][rows]), KANE))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    return {"phases": _figure_phases(tables["spin"]), "rod": _figure_rod(tables["rod"])}


def _figure_phases(spin: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 3.0), sharex=True)
    steppers = dict(zip(PARAMS["steppers"], (BLUE, GREEN, ORANGE, RED, PURPLE)))
    h = np.max(spin["step"])
    for stepper, colour in steppers.items():
        rows = (
            (spin["stepper"] == stepper) & (spin["law"] == "newton") & (spin["e"] == 0) & (spin["step"] == h)
        )
        if np.any(rows):
            size = 2.5 if stepper == "implicit-rattle-4" else 4
            axes[0, 0].plot(
                spin["phase"][rows], spin["spin"][rows], "o-", color=colour, label=stepper, ms=size
            )
    still = spin["exact"][(spin["e"] == 0)][0]
    axes[0, 0].axhline(still, color="black", linewidth=0.8, label="closed form")
    label(axes[0, 0], "a", f"e = 0, h = {h:g} s")
    for law, colour in zip(LAWS, (BLUE, ORANGE, GREEN)):
        for e, marker in zip(RESTITUTIONS[1:], "os"):
            rows = (spin["stepper"] == "implicit-rattle") & (spin["law"] == law) & (spin["e"] == e)
            rows &= spin["step"] == h
            axes[0, 1].plot(
                spin["phase"][rows], spin["spin"][rows], marker, color=colour, label=f"{law}, e = {e:g}", ms=3
            )
            axes[0, 1].axhline(spin["exact"][rows][0], color=colour, linewidth=0.8)
    label(axes[0, 1], "b", "implicit-rattle; lines: closed form")
    for axis in axes[0]:
        axis.set(xlabel="phase of the step at the impact", ylabel="spin after, rad/s", xlim=(0, 1))
        low, high = axis.get_ylim()
        axis.set(ylim=(low, high + 0.45 * (high - low)))
        axis.legend(loc="upper center", ncols=2)
    return figure


def _figure_rod(rod: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    energy, factor = axes[0]
    for law, colour in zip(LAWS, (BLUE, ORANGE, GREEN)):
        rows = rod["law"] == law
        energy.plot(rod["angle"][rows], rod["exact"][rows], color=colour, label=law)
        energy.plot(rod["angle"][rows], rod["gain"][rows], ".", color=colour)
        if law == "energetic":
            factor.plot(rod["angle"][rows], rod["factor"][rows], color=colour, label=law)
    energy.set(xlabel="angle of the rod, degrees", ylabel="gain / energy of the contact")
    energy.legend(loc="lower right")
    label(energy, "a", "dots: implicit-rattle")
    factor.set(xlabel="angle of the rod, degrees", ylabel="$s k / e$")
    factor.legend(loc="upper right")
    label(factor, "b", "energetic: k as used, over e")
    return figure
