"""C07 example 3, Fig. 6 to 8: a small sphere rolls and slides on two large fixed ones, and leaves them.

Contact 1 (sphere of 10 m) slides from the start, contact 2 (sphere of 9 m) rolls, then slides; then
contact 1 opens, then contact 2. The reference integrates the contact modes with located events.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.certified import certificate, certificate_checks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    RED,
    label,
    order_line,
    panels,
    paper,
)
from implicit_geom.experiments.references import reference
from implicit_geom.experiments.regression import order

TITLE = "C07 example 3, Fig. 6, 7, 8: sphere on two spheres, with the order of convergence"
PARAMS: dict[str, Any] = {
    "step": 0.01,
    "duration": 4.0,
    "steps": (0.02, 0.01, 0.005, 0.0025),
    "directions": ((0.0, 1.0, 0.0), (0.3, 1.0, -0.4)),
}
QUICK: dict[str, Any] = {
    "steps": (0.02, 0.01, 0.005),
    "directions": ((0.3, 1.0, -0.4),),
}

MU, E_R = 0.2, 0.3
FORCE = (1.0, 2.6, -9.81)
COMPARED = (1.0, 2.0, 2.5)  # s
EVENTS = ("contact2_roll_to_slide", "contact1_separates", "contact2_separates")
COMPONENTS = tuple(f"{symbol}_{axis}" for symbol in "vw" for axis in "xyz")


def scene(direction: tuple[float, ...] | None = None) -> Scene:
    """The sphere at rest on both; `direction` is the reference of the tangent t."""
    s = Scene(gravity=(0, 0, 0))
    s.add("large 1", shapes.sphere(10.0), fixed=True)
    s.add("large 2", shapes.sphere(9.0), fixed=True, position=(0, 11.4, 0))
    s.add("small", shapes.sphere(1.0), mass=1.0, position=(0, 6.62105263157895, 8.78417110772903))
    s.applied("small", force=FORCE)
    s.friction(mu=MU, e_t=1.0, e_o=1.0, e_r=E_R, direction=direction)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    duration, h = params["duration"], params["step"]
    steps = sorted({h, *params["steps"]}, reverse=True)
    runs = {
        step: simulate(scene(), duration=duration, step=step, stepper="implicit-euler", progress=False)
        for step in steps
    }
    main = runs[h]
    turned = {
        "t along " + " ".join(f"{c:g}" for c in d): simulate(
            scene(d), duration=duration, step=h, stepper="implicit-euler", progress=False
        )
        for d in params["directions"]
    }
    differences = [np.max(np.abs(_state(r) - _state(main))) for r in turned.values()]
    tables = {
        "velocities": {"time": main.time, **dict(zip(COMPONENTS, _velocities(main).T))},
        "contact_1": _contact(main, "large 1", h),
        "contact_2": _contact(main, "large 2", h),
        "events": _events(runs),
        "errors": _errors(runs),
        "frames": {"frame": np.array(list(turned)), "difference": np.array(differences)},
    }
    named = {f"h = {step:g}": r for step, r in runs.items()}
    return {**tables, "certificate": certificate({**named, **turned})}


def _velocities(run: Trajectory) -> np.ndarray:
    body = run["small"]
    return np.hstack([body.velocity, body.angular_velocity])


def _state(run: Trajectory) -> np.ndarray:
    body = run["small"]
    return np.hstack([body.position, body.orientation, _velocities(run)])


def _contact(run: Trajectory, name: str, h: float) -> dict[str, np.ndarray]:
    """Forces and slip over time, zero where the contact is open.

    friction is |(lambda_t, lambda_o, lambda_r / e_r)|, which sliding makes mu lambda_n [C07, eq. 5].
    """
    rows = run.contacts[run.contacts["first"] == name]
    at = np.rint(rows["time"] / h).astype(int) - 1
    columns = {"time": run.time[1:]}
    values = {
        "normal_force": rows["p_n"] / h,
        "friction": np.sqrt(rows["p_t"] ** 2 + rows["p_o"] ** 2 + (rows["p_r"] / E_R) ** 2) / h,
        "slip_speed": rows["slip_speed"],
        "slides": (rows["mode"] == "slide").astype(int),
    }
    for column, value in values.items():
        columns[column] = np.zeros(len(run.time) - 1, value.dtype)
        columns[column][at] = value
    return columns


def _events(runs: dict[float, Trajectory]) -> dict[str, np.ndarray]:
    """Times of the three events at every step size: the end of the first step in the new mode."""
    found: dict[str, list[float]] = {name: [] for name in EVENTS}
    for h, r in runs.items():
        contact_1, contact_2 = (_contact(r, f"large {i}", h) for i in (1, 2))
        times = (
            _first(contact_2, contact_2["slides"] > 0),
            _first(contact_1, contact_1["normal_force"] <= 0),
            _first(contact_2, contact_2["normal_force"] <= 0),
        )
        for name, time in zip(EVENTS, times):
            found[name].append(time)
    exact = reference("sphere_on_two_spheres")["events"]
    table = {"step": np.array([*runs, 0.0])}  # the last row is the reference
    return table | {name: np.array([*times, exact[name]]) for name, times in found.items()}


def _first(contact: dict[str, np.ndarray], where: np.ndarray) -> float:
    return float(contact["time"][np.argmax(where)]) if np.any(where) else np.nan


def _errors(runs: dict[float, Trajectory]) -> dict[str, np.ndarray]:
    """Relative error of the generalised velocity (v, omega) at the compared times."""
    states = reference("sphere_on_two_spheres")["states"]
    exact = np.hstack([np.array(states["v"]), np.array(states["omega"])])
    table = {"step": np.array(list(runs))}
    for t in COMPARED:
        wanted = exact[np.argmin(np.abs(np.array(states["t"]) - t))]
        found = [_velocities(r)[np.argmin(np.abs(r.time - t))] for r in runs.values()]
        table[f"at_{t:g}"] = np.linalg.norm(np.array(found) - wanted, axis=1) / np.linalg.norm(wanted)
    return table


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    events, errors = tables["events"], tables["errors"]
    h = 0.01
    row = int(np.argmin(np.abs(events["step"] - h)))
    checks = []
    for name in EVENTS:
        off = abs(events[name][row] - events[name][-1])
        checks.append(at_most(f"{name.replace('_', ' ')}, distance from the reference", off, 2 * h, "s"))
    for t in COMPARED:
        error = errors[f"at_{t:g}"]
        checks.append(at_most(f"relative velocity error at t = {t:g} s", error[row], 0.012))
        measured = order(errors["step"], error)
        checks.append(at_least(f"order of the velocity at t = {t:g} s", measured, 0.9))
        checks.append(at_most(f"order of the velocity at t = {t:g} s", measured, 1.1))
    sliding = tables["contact_1"]
    excess = np.max(np.abs(sliding["friction"] - MU * sliding["normal_force"]))
    checks.append(at_most("contact 1 slides: friction magnitude against mu lambda_n", excess, 1e-6, "N"))
    rolling = tables["contact_2"]
    before = rolling["time"] < 2.9
    checks.append(
        at_most("contact 2 rolls until 2.9 s: slip speed", rolling["slip_speed"][before].max(), 1e-8, "m/s")
    )
    difference = np.max(tables["frames"]["difference"])
    checks.append(at_most("difference between tangent frames, largest in any SI unit", difference, 1e-9))
    return checks + certificate_checks(tables["certificate"])


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    states = {k: np.array(v) for k, v in reference("sphere_on_two_spheres")["states"].items()}
    figures = {"figure_6": _figure_6(tables["velocities"], states), "order": _figure_order(tables["errors"])}
    for i in (1, 2):
        figures[f"figure_{6 + i}"] = _figure_contact(tables[f"contact_{i}"], states, i)
    return figures


def _figure_6(velocities: dict[str, np.ndarray], states: dict[str, np.ndarray]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.7), sharex=True)
    for axis, symbol, name, exact in (
        (axes[0, 0], "v", "v", states["v"]),
        (axes[0, 1], "w", r"\omega", states["omega"]),
    ):
        for i, (c, colour) in enumerate(zip("xyz", (BLUE, ORANGE, GREEN))):
            axis.plot(velocities["time"], velocities[f"{symbol}_{c}"], color=colour, label=f"${name}_{c}$")
            axis.plot(states["t"][::2], exact[::2, i], ".", color=colour, markersize=3)
        axis.plot([], [], ".", color=GREY, label="reference")
        axis.set(xlabel="time, s", xlim=(0, 4))
        axis.legend(loc="upper left" if symbol == "w" else "lower left")
    axes[0, 0].set(ylabel="m/s")
    axes[0, 1].set(ylabel="rad/s")
    label(axes[0, 0], "a", "velocity of the centre")
    label(axes[0, 1], "b", "angular velocity")
    return figure


def _figure_contact(contact: dict[str, np.ndarray], states: dict[str, np.ndarray], i: int) -> Any:
    figure, axes = panels(1, 1, (COLUMN, 2.6))
    axis = axes[0, 0]
    t = states["t"]
    rows = (
        (r"$\mu\lambda_n$, N", MU * contact["normal_force"], MU * states[f"N{i}"], BLUE, "-"),
        ("friction magnitude, N", contact["friction"], states[f"friction{i}"], ORANGE, "--"),
        ("sliding speed, m/s", contact["slip_speed"], states[f"slip_speed{i}"], RED, "-"),
    )
    for name, values, exact, colour, line in rows:
        axis.plot(contact["time"], values, line, color=colour, label=name)
        axis.plot(t[::2], exact[::2], ".", color=colour, markersize=2.5)
    axis.plot([], [], ".", color=GREY, label="reference")
    axis.set(xlabel="time, s", xlim=(0, 4), ylim=(-0.05, None))
    axis.legend(
        loc="upper left" if i == 1 else "center left", bbox_to_anchor=(0.02, 0.98 if i == 1 else 0.42)
    )
    return figure


def _figure_order(errors: dict[str, np.ndarray]) -> Any:
    figure, axes = panels(1, 1, (COLUMN, 2.5))
    axis = axes[0, 0]
    for t, marker in zip(COMPARED, "os^"):
        error = errors[f"at_{t:g}"]
        axis.loglog(
            errors["step"],
            error,
            marker + "-",
            label=f"t = {t:g} s, order {order(errors['step'], error):.2f}",
        )
    order_line(axis, errors["step"], np.min([errors[f"at_{t:g}"] for t in COMPARED], axis=0))
    axis.set(xlabel="step $h$, s", ylabel="relative velocity error")
    axis.set_xticks(errors["step"], [f"{h:g}" for h in errors["step"]])
    axis.minorticks_off()
    axis.legend(loc="upper left")
    return figure
