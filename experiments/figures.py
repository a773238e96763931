"""The house style of figures: sizes of a printed page, one palette, and small shared helpers.

`@paper` on an experiment's `plot` applies the style; `panels` makes the axes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

COLUMN, PAGE = 3.5, 7.2  # widths in inches: one column, and the text of a page
# readable in grey and by the colour-blind
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0b5fa5", "#e08214", "#1b8a5a", "#c0392b", "#7b4ea3", "#7a7a7a"
BROWN = "#8c5a2b"
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, GREY)
STYLE: dict[str, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.borderaxespad": 0.3,
    "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
    "axes.formatter.useoffset": False,
}

Plot = Callable[[dict[str, dict[str, np.ndarray]]], dict[str, Figure]]


def paper(plot: Plot) -> Plot:
    """Draw in the house style, whatever the user's own settings are."""

    @functools.wraps(plot)
    def styled(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Figure]:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(STYLE)
            figures = plot(tables)
            for figure in figures.values():
                # ticks and layout are made now, under the style, not when the file is written
                figure.canvas.draw()
        return figures

    return styled


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure and its axes as an array (rows, columns); size in inches."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def mosaic(
    layout: list[list[str]], size: tuple[float, float], **options: Any
) -> tuple[Figure, dict[str, Axes]]:
    """A figure and its axes by name, laid out as in the rows of names; size in inches."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplot_mosaic(layout, **options)


def label(axis: Axes, letter: str, title: str) -> None:
    """A panel's title, at its upper left."""
    axis.set_title(f"({letter}) {title}", loc="left")


def order_line(axis: Axes, h: np.ndarray, error: np.ndarray, order: int = 1) -> None:
    """A dashed line of the given slope below the data of a log-log plot."""
    at = np.array([h.min(), h.max()])
    line = 0.5 * np.min(error / h**order) * at**order
    axis.plot(at, line, "--", color=GREY, linewidth=0.8)
    middle = np.sqrt(at[0] * at[1]), np.sqrt(line[0] * line[1])
    axis.annotate(
        f"slope {order}", middle, xytext=(6, -9), textcoords="offset points", color=GREY, fontsize=8
    )


def solid(
    axis: Axes, vertices: np.ndarray, triangles: np.ndarray, *, ground: float, tilt: float = 0.22
) -> None:
    """A convex body seen along +y from `tilt` rad above, shaded by its normals, on a square of plane z = 0.

    vertices (V, 3) in m, world; triangles (T, 3) outward; ground is the half-width of the square.
    """
    c, s = np.cos(tilt), np.sin(tilt)
    across, up, towards = np.array([1.0, 0, 0]), np.array([0, s, c]), np.array([0, -c, s])
    corners = ground * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    axis.fill(corners @ across, corners @ up, facecolor="#eeeeee", edgecolor="#cccccc", linewidth=0.5)
    shadow = vertices * [1, 1, 0]
    hull = shadow[ConvexHull(shadow[:, :2]).vertices]
    axis.fill(hull @ across, hull @ up, facecolor="#d2d2d2", linewidth=0)
    a, b, d = (vertices[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, d - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    front = normals @ towards > 1e-3
    light = np.array([-0.45, -0.6, 0.66])
    bright = 0.35 + 0.65 * np.clip(normals[front] @ light, 0, 1)
    base = np.array([0.45, 0.66, 0.87])
    colours = np.clip(bright[:, None] * base + 0.12 * bright[:, None] ** 4, 0, 1)
    corners_2d = np.stack([vertices @ across, vertices @ up], axis=1)[triangles[front]]
    axis.add_collection(
        PolyCollection(corners_2d, facecolors=colours, edgecolors=colours, linewidths=0.3, joinstyle="round")
    )
    flat = np.stack([vertices @ across, vertices @ up], axis=1)
    outline = flat[ConvexHull(flat).vertices]
    axis.fill(
        outline[:, 0], outline[:, 1], facecolor="none", edgecolor="#1d3f5e", linewidth=0.6, joinstyle="round"
    )
