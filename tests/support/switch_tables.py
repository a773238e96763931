"""The sixteen combinations of switches, and scenes to try them on."""

from itertools import product

from implicit_geom import Scene, Stepper, shapes

SWITCHES = list(
    product(("implicit", "faceted"), ("end", "linearised"), ("end", "start"), ("ellipsoid", "pyramid"))
)
NAMES = ["-".join(s) for s in SWITCHES]


def stepper(switches: tuple[str, ...], **options: object) -> Stepper:
    surface, gap, wrench, friction = switches
    return Stepper(surface=surface, gap=gap, wrench=wrench, friction=friction, **options)


def ellipse(*, high: float = 0.0) -> Scene:
    """An ellipse that slides and rolls, dropped from a height."""
    s = Scene(dim=2)
    s.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    at = {"position": (0, 0.4 + high), "velocity": (1, 0), "angular_velocity": -1.0}
    s.add("egg", shapes.ellipse(0.5, 0.4), mass=1.0, **at)
    s.friction(mu=0.3)
    return s


def ellipsoid(*, high: float = 0.0) -> Scene:
    """The same in space, with friction against spinning."""
    s = Scene()
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    at = {"position": (0, 0, 0.4 + high), "velocity": (1, 0.5, 0), "angular_velocity": (-0.5, 1, 0.5)}
    s.add("egg", shapes.ellipsoid(0.5, 0.45, 0.4), mass=1.0, **at)
    s.friction(mu=0.3, e_r=0.05)
    return s
