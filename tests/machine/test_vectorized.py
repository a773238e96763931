"""Functions of many columns in machine code give what CasADi gives."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import shapes
from implicit_geom.equations.momentum import momentum_rows
from implicit_geom.equations.pair_kernel import pair_kernel
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.machine import vectorized
from implicit_geom.machine.vectorized import VectorizedFunction

KINDS = {
    "discs": PairKind(shapes.disc(0.1), shapes.disc(0.2), ("t",)),
    "floor": PairKind(shapes.halfplane((0, 1)), shapes.disc(0.2), ("t",), moves=(False, True)),
    "ellipsoids": PairKind(
        shapes.ellipsoid(0.1, 0.2, 0.3), shapes.ellipsoid(0.1, 0.1, 0.3), ("t", "o", "r"), scheme="position"
    ),
    "boxes": PairKind(shapes.box(0.1, 0.2, 0.3), shapes.box(0.1, 0.1, 0.3), ("t", "o"), scheme="velocity"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_same_values(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, Jacobians, reports and momentum rows agree to 1e-13 of their size, column by column."""
    pytest.importorskip("llvmlite")
    kernel = pair_kernel(KINDS[kind])
    momentum, _ = momentum_rows(kernel.kind.first.dim, kernel.kind.scheme)
    for function in (*kernel.exact, kernel.report, momentum):
        rng = np.random.default_rng(0)
        columns = [rng.uniform(0.2, 1, (70, function.nnz_in(i))) for i in range(function.n_in())]
        found = []
        for limit in (10**9, 2):
            monkeypatch.setattr(vectorized, "COMPILED", limit)
            call = VectorizedFunction(function, 70)
            found.append([out.copy() for out in call(*columns)])
            assert hasattr(call, "_buffer") == (limit > 2)
        for a, b in zip(*found, strict=True):
            assert a.shape == b.shape
            assert np.all(np.isfinite(a))
            assert np.abs(a - b).max() <= 1e-13 * max(1.0, np.abs(a).max())
            assert not np.array_equal(a[0], a[1]) or a.shape[1] < 2
