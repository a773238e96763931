"""A ball that slides until it rolls: from a slide, with backspin, and sliding and spinning together.

A change of mode within a step must not cost the order. Where in the step it falls depends on the step
grid, so that every run is repeated with the grid moved by eighths of a step (a shorter first step), and the
largest error over the eight must fall as h^2. While the ball slides without spinning, its acceleration a is
constant and `implicit-rattle` exact; if it starts to roll at the fraction theta of a step, that step moves it

    a h^2 min(theta, 1 - theta)^2 / 2     too little,    at most a h^2 / 8,   a = mu g

Sliding and spinning together (torsional friction, e_r > 0) all slip ends at one instant.

And a small fast ball (r = 0.01 m at 1 m/s turns by 1 rad a step) rolls along its exact path, like a disc
in the plane: rotations go by the exponential map.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, rotation, shapes, simulate
from implicit_geom.experiments.approach import constraint_checks, constraints
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.comparison import (
    Table,
    columns,
    ledger_checks,
    ledger_table,
    motion_table,
    of_case,
    order_checks,
    own_share,
    turn_between,
)
from implicit_geom.experiments.sliding_ball_figures import plot
from implicit_geom.experiments.sliding_ball_reference import (
    CASES,
    STRAIGHT,
    Case,
    exact_states,
    sliding,
    table_key,
)

__all__ = ["PARAMS", "QUICK", "TITLE", "check", "plot", "run"]

TITLE = "a ball slides, spins and begins to roll: order across the change of mode"
PARAMS: dict[str, Any] = {
    "offsets": 8,
    "steps": {
        "slide": {
            "implicit-euler": (0.04, 0.02, 0.01, 0.005),
            "implicit-rattle": (0.04, 0.02, 0.01, 0.005, 0.0025),
            "implicit-rattle-4": (0.04, 0.02, 0.01),
        },
        "backspin": {"implicit-rattle": (0.04, 0.02, 0.01, 0.005)},
        "slide and spin": {"implicit-rattle": (0.04, 0.02, 0.01, 0.005)},
    },
    "step": 0.01,  # of the runs that are drawn
}
QUICK: dict[str, Any] = {
    "steps": {
        "slide": {"implicit-rattle": (0.04, 0.02)},
        "slide and spin": {"implicit-rattle": (0.15, 0.075)},
    },
    "step": 0.05,
}

ORDERS = {"implicit-rattle": 1.9}
KEPT = 1e-9  # velocity after the change of mode, which momentum alone decides; m/s, rad/s
PREDICTED = 1e-10  # m: how far the error of a straight slide may be from its prediction
ON_PATH = 1e-9  # m, rad: a rolling ball against its exact path
RADIUS, SPEED, STEP, TIME = 0.01, 1.0, 0.01, 1.0  # of the small fast ball and disc


def scene(inputs: dict[str, Any]) -> Scene:
    """The ball of a reference on the plane."""
    s = Scene(gravity=(0, 0, -9.81))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add(
        "body",
        shapes.sphere(inputs["r"]),
        mass=inputs["m"],
        position=inputs["x0"],
        orientation=inputs["q0"],
        velocity=inputs["v0"],
        angular_velocity=inputs["omega0"],
    )
    s.friction(mu=inputs["mu"], e_r=inputs.get("e_r", 0.0))
    return s


def shifted(case: Case, h: float, stepper: str, offset: float) -> Trajectory:
    """A run to the case's end in steps of h after a first one of offset * h (0: of h as well)."""
    options = {"stepper": stepper, "progress": False}
    start = scene(case.exact["inputs"])
    if offset == 0:
        return simulate(start, duration=case.end, step=h, **options)
    first = simulate(start, duration=offset * h, step=offset * h, **options)
    return first.resume(duration=case.end - offset * h, step=h, progress=False)


def run(params: dict[str, Any]) -> dict[str, Table]:
    tables: dict[str, Table] = {"closed_form": _closed_form()}
    rows, named = [], {}
    for name, by_stepper in params["steps"].items():
        case = CASES[name]
        for stepper, h in ((s, h) for s, steps in by_stepper.items() for h in sorted(steps, reverse=True)):
            for offset in np.arange(params["offsets"]) / params["offsets"]:
                r = shifted(case, h, stepper, offset)
                named[f"{name}, {stepper}, h = {h:g}, offset {offset:g}"] = r
                theta = ((case.stop - offset * h) / h) % 1.0
                predicted = case.grip * h**2 * min(theta, 1 - theta) ** 2 / 2
                rows.append((name, stepper, h, offset, theta, predicted, *_errors(case, r)))
        shown = f"{name}, implicit-rattle, h = {params['step']:g}, offset 0"
        if shown not in named:
            named[shown] = shifted(case, params["step"], "implicit-rattle", 0.0)
        tables[f"{table_key(name)}_motion"] = motion_table(named[shown], "body")
        tables[f"{table_key(name)}_ledger"] = ledger_table(named[shown])
    names = ("case", "stepper", "step", "offset", "theta", "predicted", "position")
    tables["offsets"] = columns((*names, "velocity_after", "spin_after", "own_form"), rows)
    tables["errors"] = _largest(tables["offsets"])
    small = {"ball": _small_ball(), "disc in the plane": _small_disc()}
    tables["small"] = columns(("body", "path", "turn"), [(n, *_off_path(r)) for n, r in small.items()])
    kept = [constraints(named, "body"), constraints(small, "body")]
    return {**tables, "constraints": {c: np.concatenate([k[c] for k in kept]) for c in kept[0]}}


def _errors(case: Case, r: Trajectory) -> tuple[float, ...]:
    """Largest position error at any known time; errors of velocity and spin once the ball must roll."""
    exact, body = exact_states(case, r.time), r["body"]
    after = r.time > case.stop
    position = np.nanmax(np.linalg.norm(body.position - exact["x"], axis=1))
    velocity = np.max(np.linalg.norm(body.velocity - exact["v"], axis=1)[after])
    spin = np.max(np.linalg.norm(body.angular_velocity - exact["omega"], axis=1)[after])
    return position, velocity, spin, own_share(r)


def _largest(offsets: Table) -> Table:
    """The largest errors over the offsets of the grid."""
    keys = list(dict.fromkeys(zip(offsets["case"], offsets["stepper"], offsets["step"])))
    rows = []
    for case, stepper, h in keys:
        chosen = (offsets["case"] == case) & (offsets["stepper"] == stepper) & (offsets["step"] == h)
        worst = [np.max(offsets[name][chosen]) for name in ("position", "velocity_after", "spin_after")]
        rows.append((case, stepper, h, *worst))
    return columns(("case", "stepper", "step", "position", "velocity_after", "spin_after"), rows)


def _closed_form() -> Table:
    """Distance of the closed form from the reference's states."""
    rows = []
    for name in ("slide", "backspin"):
        states = {key: np.array(column) for key, column in CASES[name].exact["states"].items()}
        found = sliding(CASES[name].exact["inputs"], states["t"])
        apart = [np.max(np.linalg.norm(found[key] - states[key], axis=1)) for key in ("x", "v", "omega")]
        rows.append((name, *apart, np.max(turn_between(found["q"], states["q"]))))
    return columns(("case", "x", "v", "omega", "turn"), rows)


def _small_ball() -> Trajectory:
    s = Scene(gravity=(0, 0, -9.81))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    start = {
        "position": (0, 0, RADIUS),
        "velocity": (SPEED, 0, 0),
        "angular_velocity": (0, SPEED / RADIUS, 0),
    }
    s.add("body", shapes.sphere(RADIUS), mass=1.0, **start)
    s.friction(mu=0.4)
    return simulate(s, duration=TIME, step=STEP, stepper="implicit-rattle", progress=False)


def _small_disc() -> Trajectory:
    s = Scene(dim=2, gravity=(0, -9.81))
    s.add("plane", shapes.halfplane(normal=(0, 1)), fixed=True)
    start = {"position": (0, RADIUS), "velocity": (SPEED, 0), "angular_velocity": -SPEED / RADIUS}
    s.add("body", shapes.disc(RADIUS), mass=1.0, **start)
    s.friction(mu=0.4)
    return simulate(s, duration=TIME, step=STEP, stepper="implicit-rattle", progress=False)


def _off_path(r: Trajectory) -> tuple[float, float]:
    """Largest distance from the exact path, and from the exact angle."""
    body, angle = r["body"], SPEED / RADIUS * r.time
    if r.scene.dim == 2:
        exact = np.column_stack([SPEED * r.time, np.full(len(r.time), RADIUS)])
        turn = np.abs(body.orientation + angle)
    else:
        exact = np.column_stack([SPEED * r.time, 0 * r.time, np.full(len(r.time), RADIUS)])
        turn = turn_between(body.orientation, rotation.exp(np.outer(angle, [0.0, 1.0, 0.0])))
    return np.max(np.linalg.norm(body.position - exact, axis=1)), np.max(turn)


def check(tables: dict[str, Table]) -> list[Check]:
    form = tables["closed_form"]
    off = max(np.max(form[name]) for name in ("x", "v", "omega", "turn"))
    checks = [at_most("closed form of the slide, distance from the reference", off, 1e-12)]
    for case in dict.fromkeys(tables["errors"]["case"]):
        errors = of_case(tables["errors"], case)
        checks += order_checks(errors, ORDERS, {"position": "largest position error"}, f"{case}: ")
        offsets = of_case(tables["offsets"], case)
        if case in STRAIGHT:
            taken = offsets["stepper"] == "implicit-rattle"
            off = np.max(np.abs(offsets["position"] - offsets["predicted"])[taken])
            checks.append(at_most(f"{case}: position error against its prediction", off, PREDICTED, "m"))
        rattle = errors["stepper"] == "implicit-rattle"
        for name, unit in {"velocity_after": "m/s", "spin_after": "rad/s"}.items():
            words = f"{case}: error of the {name.removesuffix('_after')} after the slip has ended"
            checks.append(at_most(words, np.max(errors[name][rattle]), KEPT, unit))
        checks += ledger_checks(tables[f"{table_key(case)}_ledger"], f"{case}: ")
    for body, path, turn in zip(*(tables["small"][name] for name in ("body", "path", "turn"))):
        checks.append(at_most(f"small {body} that rolls: distance from its path", path, ON_PATH, "m"))
        checks.append(at_most(f"small {body} that rolls: error of its angle", turn, ON_PATH, "rad"))
    return checks + constraint_checks(tables["constraints"])
