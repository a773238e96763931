"""Contacts at a pose: gaps are those of `distance()`, and change at the rate W_n^T nu."""

import numpy as np
import pytest

from implicit_geom import Scene, distance, shapes
from implicit_geom.classical.contact_finder import ContactFinder
from implicit_geom.classical.contacts import Contacts
from implicit_geom.model.model import Model, State
from implicit_geom.rotation import unit


def planar() -> Scene:
    s = Scene(dim=2)
    s.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    s.add("disc", shapes.disc(1.0), mass=1.0, position=(0, 1.01), orientation=0.2)
    s.add("egg", shapes.ellipse(1.0, 0.6), mass=1.0, position=(2.02, 0.8), orientation=0.3, com=(0.1, 0.05))
    return s


def spatial() -> Scene:
    s = Scene()
    s.add("ground", shapes.halfspace(normal=(0, 0.1, 1)), fixed=True)
    s.add("ball", shapes.sphere(0.5), mass=1.0, position=(0, 0, 0.55), com=(0.1, 0, 0))
    s.add(
        "egg",
        shapes.ellipsoid(0.5, 0.4, 0.3),
        mass=1.0,
        position=(0.9, 0.1, 0.6),
        orientation=unit((1, 0.2, 0, 0)),
    )
    s.add("other", shapes.sphere(0.2), mass=1.0, position=(0.1, -0.7, 0.55))
    return s


@pytest.fixture(params=[planar, spatial])
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param())


def pose(state: State, R: np.ndarray, com: np.ndarray, b: int) -> tuple:
    return state.x[b] - R[b] @ com[b], state.q[b]


def far(model: Model) -> np.ndarray:
    return np.full(len(model.bodies), 1.0)


def test_smooth_gaps_are_those_of_distance(model: Model) -> None:
    state = model.initial_state()
    c = ContactFinder(model).contacts(state, far(model))
    assert len(c) == len(model.pairs)
    for k in range(len(c)):
        i, j = c.first[k], c.second[k]
        at = [pose(state, state.R, model.com, b) for b in (i, j)]
        d = distance(model.bodies[i].shape, at[0], model.bodies[j].shape, at[1])
        assert c.gap[k] == pytest.approx(d.gap, abs=1e-10)
        np.testing.assert_allclose(c.normal[k], d.normal, atol=1e-9)


def test_smallest_vertex_gap_is_that_of_the_polygons() -> None:
    model = Model(planar())
    state = model.initial_state()
    c = ContactFinder(model, 12).contacts(state, far(model))
    for pair in range(3):
        i, j = (int(b[0]) for b in model.pairs.sides(np.array([pair])))
        at = [pose(state, state.R, model.com, b) for b in (i, j)]
        one, two = (model.bodies[b].shape for b in (i, j))
        d = distance(one if i == 0 else one.faceted(12), at[0], two.faceted(12), at[1])
        assert c.gap[c.pair == pair].min() == pytest.approx(d.gap, abs=1e-9)


@pytest.mark.parametrize("facets", [None, 12])
def test_gap_changes_at_the_rate_of_the_normal_velocity(model: Model, facets: int | None) -> None:
    if model.dim == 3 and facets:
        pytest.importorskip("coal", reason="polyhedra against each other need coal (extra `facets`)")
    state, finder = model.initial_state(), ContactFinder(model, facets)
    c = finder.contacts(state, far(model))
    rng = np.random.default_rng(1)
    nu = rng.normal(size=(len(model.bodies), model.dim + model.spins))
    nu[0] = 0.0
    eps = 1e-6
    ahead, behind = (finder.at_pose(c, state.advanced(nu, s * eps)) for s in (1, -1))
    np.testing.assert_allclose((ahead.gap - behind.gap) / (2 * eps), c.normal_velocity(nu), atol=1e-7)


@pytest.mark.parametrize("facets", [None, 12])
def test_wrenches_are_the_transposed_velocities_and_keep_momentum(model: Model, facets: int | None) -> None:
    if model.dim == 3 and facets:
        pytest.importorskip("coal", reason="polyhedra against each other need coal (extra `facets`)")
    state = model.initial_state()
    c = ContactFinder(model, facets).contacts(state, far(model))
    nu = np.random.default_rng(2).normal(size=(len(model.bodies), model.dim + model.spins))
    one, two = c.wrenches()
    rates = np.einsum("ncv,nv->nc", one, nu[c.first]) + np.einsum("ncv,nv->nc", two, nu[c.second])
    np.testing.assert_allclose(rates, np.column_stack([c.normal_velocity(nu), c.slip(nu)]), atol=1e-12)
    np.testing.assert_allclose(total(c, state, one, two), 0.0, atol=1e-12)


def total(c: Contacts, state: State, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Linear and angular momentum that unit impulses give both bodies together."""
    dim = c.r1.shape[1]
    out = one + two
    for W, b in ((one, c.first), (two, c.second)):
        x, f = state.x[b][:, None, :], W[..., :dim]
        if dim == 3:
            out[..., dim:] += np.cross(np.broadcast_to(x, f.shape), f)
        else:
            out[..., 2] += x[..., 0] * f[..., 1] - x[..., 1] * f[..., 0]
    return out
