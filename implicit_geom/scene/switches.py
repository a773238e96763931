"""`Stepper`: a time stepper put together from switches, each exact or approximate.

    switch      exact       approximate
    surface     implicit    faceted      shapes are replaced by inscribed polygons or polyhedra
    gap         end         linearised   the gap at the end of the step, or its first-order guess at the start
    wrench      end         start        contact points and frames in the momentum balance and in the slip
    friction    ellipsoid   pyramid      the friction ellipsoid, or the hull of `directions` points on it

Stewart and Trinkle's scheme, as [C07, section I] describes it, is the one with all four approximate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import choice, hint, positive
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import shown

INTEGRATORS = ("euler", "rattle", "rattle-4")
EXACT = {"surface": "implicit", "gap": "end", "wrench": "end", "friction": "ellipsoid"}
APPROXIMATE = {"surface": "faceted", "gap": "linearised", "wrench": "start", "friction": "pyramid"}
VERTEX_SCHEMES = ("nguyen-trinkle", "conjunction")  # planar, of vertices and facets; take unions
SCHEMES = ("switches", "anitescu-hart", *VERTEX_SCHEMES)  # a scheme of its own kind has a name here
RELAXATIONS = ("LCP0", "LCP1", "LCP2")

# Steppers by name, as the fields of `Stepper` that make them.
NAMED: dict[str, dict[str, Any]] = {
    "implicit-rattle": {"integrator": "rattle"},
    "implicit-rattle-4": {"integrator": "rattle-4"},
    "implicit-euler": {"integrator": "euler"},
    "stewart-trinkle": {"integrator": "euler", **APPROXIMATE},
    "nguyen-trinkle": {"integrator": "euler", **APPROXIMATE, "scheme": "nguyen-trinkle"},
    "anitescu-hart": {
        "integrator": "euler",
        **APPROXIMATE,
        "surface": "implicit",
        "scheme": "anitescu-hart",
        "relaxation": "LCP2",
    },
}


@dataclass(frozen=True)
class Stepper:
    """A time stepper put together from switches; `Stepper()` is `implicit-euler`.

    integrator             "euler", "rattle" or "rattle-4"
    surface                "implicit", or "faceted": inscribed polygons or polyhedra
    gap                    "end", or "linearised" at the start of the step
    wrench                 "end", or "start": where contact points and frames are taken
    friction               "ellipsoid", or "pyramid"
    facets                 vertices of a faceted shape, at least dim + 1
    directions             of the friction pyramid in space, even and at least 4; in the plane there are two
    aligned                turn the pyramid's first direction along the slip at the start of the step
    scheme                 "switches", or a scheme of its own: "anitescu-hart", "nguyen-trinkle" (a vertex
                           against a whole convex polygon) and "conjunction" (against each of its facets
                           nearby), the last two planar
    relaxation             of `anitescu-hart` (empty for all others): LCP0, LCP1 or LCP2
    relaxation_limit       pivots or rounds of it, at most
    relaxation_tolerance   LCP1 ends where the slip changes by less, m/s

    SceneError where fields do not go together.

    >>> Stepper(gap="linearised", wrench="start")
    Stepper(gap='linearised', wrench='start')
    >>> Stepper.named("stewart-trinkle", facets=1000).approximated
    ('surface', 'gap', 'wrench', 'friction')
    """

    integrator: str = "euler"
    surface: str = "implicit"
    gap: str = "end"
    wrench: str = "end"
    friction: str = "ellipsoid"
    facets: int = 64
    directions: int = 8
    aligned: bool = False
    scheme: str = "switches"
    relaxation: str = ""
    relaxation_limit: int = 10_000
    relaxation_tolerance: float = 1e-5

    def __post_init__(self) -> None:
        choice("stepper.integrator", self.integrator, INTEGRATORS)
        for name, exact in EXACT.items():
            choice(f"stepper.{name}", getattr(self, name), (exact, APPROXIMATE[name]))
        choice("stepper.scheme", self.scheme, SCHEMES)
        if self.scheme in VERTEX_SCHEMES:
            for name, wanted in APPROXIMATE.items():
                if getattr(self, name) != wanted:
                    raise SceneError(
                        f"stepper.{name} = {getattr(self, name)!r} does not go with {self.scheme!r}; "
                        f"take {name} = {wanted!r}, or Stepper.named('nguyen-trinkle', scheme=...)"
                    )
        _whole("stepper.facets", self.facets, 3, most=100_000)
        _whole("stepper.directions", self.directions, 4, most=10_000)
        if self.directions % 2:
            raise SceneError(
                f"stepper.directions = {self.directions} must be even: each direction needs its opposite"
            )
        if not isinstance(self.aligned, bool):
            raise SceneError(f"stepper.aligned = {shown(self.aligned)} must be true or false")
        self._check_relaxation()
        if self.integrator != "euler":
            for name in ("gap", "wrench", "friction"):
                if getattr(self, name) != EXACT[name]:
                    raise SceneError(
                        f"stepper.{name} = {getattr(self, name)!r} does not go with integrator = "
                        f"{self.integrator!r}, which is second order only if all but the surface is exact; "
                        "take integrator = 'euler'"
                    )
        if self.aligned and self.friction != "pyramid":
            raise SceneError(
                "stepper.aligned = true turns a pyramid; take friction = 'pyramid', or leave it out"
            )

    def _check_relaxation(self) -> None:
        if not isinstance(self.relaxation, str):
            raise SceneError(
                f"stepper.relaxation = {shown(self.relaxation)} must be a text: {', '.join(RELAXATIONS)}"
            )
        _whole("stepper.relaxation_limit", self.relaxation_limit, 1)
        positive("stepper.relaxation_tolerance", self.relaxation_tolerance)
        if self.scheme != "anitescu-hart":
            if self.relaxation:
                raise SceneError(
                    f"stepper.relaxation = {self.relaxation!r} is for anitescu-hart only; "
                    "take name = 'anitescu-hart', or leave it out"
                )
            return
        choice("stepper.relaxation", self.relaxation, RELAXATIONS)
        for name in ("gap", "wrench", "friction"):
            if getattr(self, name) != APPROXIMATE[name]:
                raise SceneError(
                    f"stepper.{name} = {getattr(self, name)!r} does not go with anitescu-hart, whose steps "
                    f"are linear; take {APPROXIMATE[name]!r}"
                )

    @staticmethod
    def named(name: str, **changes: Any) -> Stepper:
        """The stepper of that name, with some of its fields changed.

        name      implicit-rattle, implicit-rattle-4, implicit-euler, stewart-trinkle, nguyen-trinkle or
                  anitescu-hart
        changes   fields of `Stepper`

        >>> Stepper.named("anitescu-hart", relaxation="LCP1").relaxation
        'LCP1'
        """
        if not isinstance(name, str) or name not in NAMED:
            raise SceneError(f"stepper = {shown(name)} is not known{hint(name, NAMED)}")
        _known(changes)
        return replace(_made(name), **changes) if changes else _made(name)

    @staticmethod
    def of(given: Any) -> Stepper:
        """A stepper from its name, its fields as in a scene file (`name` may be one of them), or itself.

        >>> Stepper.of({"name": "stewart-trinkle", "facets": 1000}).facets
        1000
        """
        if isinstance(given, Stepper):
            return given
        if isinstance(given, Mapping):
            table = dict(given)
            name = table.pop("name", None)
            _known(table)
            return Stepper(**table) if name is None else Stepper.named(name, **table)
        return Stepper.named(given)

    @property
    def name(self) -> str:
        """The name that stands for exactly these fields; empty where there is none."""
        return next((name for name in NAMED if Stepper.named(name) == self), "")

    @property
    def exact(self) -> bool:
        """Whether gap, wrench and friction are exact: a step is one of `implicit_geom.steppers`."""
        return self.scheme == "switches" and all(
            getattr(self, name) == EXACT[name] for name in ("gap", "wrench", "friction")
        )

    @property
    def approximated(self) -> tuple[str, ...]:
        """The switches that are approximate."""
        return tuple(name for name in EXACT if getattr(self, name) != EXACT[name])

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, as in the [simulation.stepper] table of a scene file."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"Stepper.named({self.name!r})" if self.name else str(self)

    def __str__(self) -> str:
        if self.name:
            return self.name
        default = Stepper()
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(default, f.name)
        ]
        return f"Stepper({', '.join(changed)})"


Stepper.__init__ = checked_call(CallError, "Stepper")(Stepper.__init__)  # type: ignore[method-assign]


FIELDS = tuple(f.name for f in fields(Stepper))


@cache
def _made(name: str) -> Stepper:
    """The stepper of a name, which nothing changes."""
    return Stepper(**NAMED[name])


def _known(table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in FIELDS:
            raise SceneError(f"stepper: key {shown(key)} is not known{hint(key, FIELDS)}")


def _whole(name: str, value: Any, least: int, *, most: int = 1_000_000_000) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SceneError(f"{name} = {shown(value)} must be a whole number, {least} or more, at most {most}")
