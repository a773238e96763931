"""Figures of a run. Matplotlib is imported only when one is drawn, and never needs a display."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.run.trajectory import Trajectory

MANY = 8  # more bodies or pairs than this are drawn without a legend


def blank(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns)
    for axis in np.ravel(axes):
        axis.grid(alpha=0.3)
    return figure, axes


def overview(run: Trajectory) -> Any:
    """Energies, heights and normal impulses over time."""
    figure, axes = blank(3, 1, (8, 9))
    energy, height, impulse = axes
    for name in ("energy", "kinetic_energy", "potential_energy"):
        energy.plot(run.time, getattr(run, name), label=name.replace("_", " "))
    energy.set(ylabel="J")
    energy.legend()
    moving = [name for name, body in run.scene.bodies.items() if not body.fixed]
    for name in moving:
        height.plot(run.time, run[name].position[:, -1], label=name)
    height.set(ylabel=f"{'zy'[run.scene.dim == 2]} of the centre of mass, m")
    contacts = run.contacts
    pairs = sorted(set(zip(contacts["first"].tolist(), contacts["second"].tolist(), strict=True)))
    for first, second in pairs:
        rows = contacts[(contacts["first"] == first) & (contacts["second"] == second)]
        impulse.plot(rows["time"], rows["p_n"], ".", markersize=3, label=f"{first} on {second}")
    impulse.set(xlabel="time, s", ylabel="normal impulse a step, N s", xlim=energy.get_xlim())
    for axis, count in ((height, len(moving)), (impulse, len(pairs))):
        if 0 < count <= MANY:
            axis.legend()
    return figure
