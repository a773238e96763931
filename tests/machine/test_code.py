"""The small language in which the loops of compiled code are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machine_code import call, compiled, lanes_of

from implicit_geom.machine.code_writer import ModuleWriter


def written(lanes: int, arguments: str, write: Callable[[Any, list[Any]], None]) -> Callable[..., int]:
    """A function in the small language, compiled."""
    m = ModuleWriter("test", lanes)
    with m.function("f", arguments, public=True) as (c, given):
        write(c, given)
    code = compiled(m.ir)
    return lambda *values: call(code, "f", *values)


@pytest.mark.parametrize("lanes", [1, 8])
def test_nested_loops_count_as_pythons_do(lanes: int) -> None:
    """sum over i < n, i <= j < n of a_i a_j, bounds known only when the code runs; none for n = 0."""

    def write(c: Any, given: list[Any]) -> None:
        n, a, out = given
        total = c.variable(0.0)
        with c.loop(n) as i, c.loop(n, i) as j:
            total.set(total.get() + a[i] * a[j])
        out[0] = total.get()

    f = written(lanes, "inn", write)
    a = np.random.default_rng(2).normal(size=(7, lanes))
    for n in (0, 1, 7):
        out = lanes_of(np.full((1, lanes), -1.0), lanes)
        f(n, lanes_of(a, lanes), out)
        wanted = sum((a[i] * a[j] for i in range(n) for j in range(i, n)), np.zeros(lanes))
        np.testing.assert_allclose(out[0], wanted, rtol=1e-14, atol=1e-14)


def test_break_ends_the_innermost_loop_only() -> None:
    """`break_if` before, in and after an inner loop; the outer loop goes on, or ends, as it is told."""

    def write(c: Any, given: list[Any]) -> None:
        n, out = given
        inner, outer, after = c.counter(), c.counter(), c.counter()
        with c.loop(n) as i:
            outer.set(outer.get() + 1)
            with c.loop(n) as j:
                c.break_if(j > i)
                inner.set(inner.get() + 1)
            c.break_if(i.equals(3))
            after.set(after.get() + 1)
        for k, counter in enumerate((inner, outer, after)):
            out[k] = counter.get()

    out = np.zeros(3, np.int64)
    written(1, "iw", write)(10, out)
    assert out.tolist() == [1 + 2 + 3 + 4, 4, 3]


def test_when_is_taken_where_any_lane_wants_it() -> None:
    """Branches are common to the lanes, `select` is not; a function may return from within a branch."""

    def write(c: Any, given: list[Any]) -> None:
        (a,) = given
        big = a[0] > 1.0
        with c.when(big.any()):
            a[1] = big.select(a[0], -1.0)
            with c.when((a[0] > 100.0).any()):
                c.ret(7)
        a[2] = (big & ~(a[0] > 2.0) | (a[0] < -1.0)).select(1.0, 0.0)

    f = written(4, "n", write)
    a = lanes_of([[0.0, 1.5, 3.0, -2.0], [9.0] * 4, [9.0] * 4], 4)
    assert f(a) == 0
    assert a[1:].tolist() == [[-1.0, 1.5, 3.0, -1.0], [0.0, 1.0, 0.0, 1.0]]
    a = lanes_of([[0.0, 0.5, np.nan, -2.0], [9.0] * 4, [9.0] * 4], 4)
    assert f(a) == 0
    assert a[1:].tolist() == [[9.0] * 4, [0.0, 0.0, 0.0, 1.0]]
    a = lanes_of([[0.0, 0.5, 200.0, -2.0], [9.0] * 4, [9.0] * 4], 4)
    assert f(a) == 7
    assert a[2].tolist() == [9.0] * 4


def test_a_comparison_with_nan_is_false_in_its_lane() -> None:
    """Whatever is compared with NaN is false, so that `not (x <= bound)` catches it; `differs` is true."""

    def write(c: Any, given: list[Any]) -> None:
        a, out = given
        x = a[0]
        masks = [x < 1.0, x <= 1.0, x > 1.0, ~(x <= 1.0), x.differs(0.0)]
        for k, mask in enumerate(masks):
            out[k] = mask.select(1.0, 0.0)

    out = lanes_of(np.zeros((5, 4)), 4)
    written(4, "nn", write)(lanes_of([[np.nan, 0.0, 1.0, 2.0]], 4), out)
    assert out.T.tolist() == [[0, 0, 0, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 0, 1], [0, 0, 1, 1, 1]]
