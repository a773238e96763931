"""Convex rigid bodies given by implicit surfaces: one complementarity problem a time step.

    >>> from implicit_geom import Scene, shapes, simulate
    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    >>> scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.31))
    >>> scene.friction(mu=0.4)
    >>> run = simulate(scene, duration=2.0, step=0.01)
    >>> run["egg"].position[-1].round(3)
    array([0. , 0. , 0.3])

SI units, z up (y up in the plane), quaternions w, x, y, z.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _CHECKING
from typing import Any as _Any

# In a checkout the folders `shapes` and `experiments` lie beside this one, once installed within it.
_beside = _Path(__file__).parent.parent
if (_beside / "pyproject.toml").is_file() and (_beside / "shapes" / "shape.py").is_file():
    __path__.append(str(_beside))

from implicit_geom import shapes
from implicit_geom.geometry.distance import distance
from implicit_geom.interface.errors import SceneError, SceneNotice, SimulationError
from implicit_geom.run.batch import Batch, simulate_batch
from implicit_geom.run.certify import Certificate
from implicit_geom.run.simulate import simulate
from implicit_geom.run.storage.replay import replay
from implicit_geom.run.storage.step_failed import StepFailed
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import read_scene
from implicit_geom.scene.switches import Stepper
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.studies.advice import Advice, advise
from implicit_geom.studies.attribution import Attribution, attribution
from implicit_geom.studies.comparison import Comparison, compare
from implicit_geom.studies.sweeps import Sweep, sweep
from implicit_geom.version import __version__

if _CHECKING:
    from implicit_geom.contact.velocity_problem import contact_problem
    from implicit_geom.solvers.contact.problem import ContactProblem
    from implicit_geom.solvers.contact.solution import ContactSolution
    from implicit_geom.solvers.contact.solve import solve_contact

# Contact problems are sparse matrices, which take as long to import as half of all else.
_LATER = {
    "ContactProblem": "implicit_geom.solvers.contact.problem",
    "ContactSolution": "implicit_geom.solvers.contact.solution",
    "contact_problem": "implicit_geom.contact.velocity_problem",
    "solve_contact": "implicit_geom.solvers.contact.solve",
}

__all__ = [
    "Advice",
    "Attribution",
    "Batch",
    "Certificate",
    "Comparison",
    "ContactProblem",
    "ContactSolution",
    "Scene",
    "SceneError",
    "SceneNotice",
    "ShapeError",
    "SimulationError",
    "StepFailed",
    "Stepper",
    "Sweep",
    "Trajectory",
    "__version__",
    "advise",
    "attribution",
    "compare",
    "contact_problem",
    "distance",
    "read_scene",
    "replay",
    "shapes",
    "simulate",
    "simulate_batch",
    "solve_contact",
    "sweep",
]


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(_import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
