"""Small dense linear systems as SX, without loops: cofactors, or elimination with pivoting."""

from __future__ import annotations

import casadi as ca


def solve(A: ca.SX, B: ca.SX) -> ca.SX:
    """X with A X = B: by cofactors up to three unknowns, otherwise by elimination.

    Cofactors lose digits where A is nearly singular; Newton's method, for which this is, measures every point
    that it reaches.
    """
    n = A.size1()
    if n > 3:
        return eliminated(A, B)
    cofactors = adjugate(A)
    determinant = sum((A[0, i] * cofactors[i, 0] for i in range(1, n)), A[0, 0] * cofactors[0, 0])
    return (cofactors @ B) * (1 / determinant)


def adjugate(A: ca.SX) -> ca.SX:
    """The transposed matrix of cofactors, A adj(A) = det(A) I."""
    n = A.size1()
    if n == 1:
        return ca.SX(1)
    if n == 2:
        return ca.vertcat(ca.horzcat(A[1, 1], -A[0, 1]), ca.horzcat(-A[1, 0], A[0, 0]))
    a, b, c = (A[i, :].T for i in range(3))
    return ca.horzcat(ca.cross(b, c), ca.cross(c, a), ca.cross(a, b))


def eliminated(A: ca.SX, B: ca.SX) -> ca.SX:
    """X with A X = B by Gaussian elimination; rows change places where another entry is larger."""
    n = A.size1()
    rows = [[*ca.horzsplit(A[i, :]), *ca.horzsplit(B[i, :])] for i in range(n)]
    inverse = []
    for k in range(n):
        for i in range(k + 1, n):
            swap = ca.fabs(rows[i][k]) > ca.fabs(rows[k][k])
            for j in range(k, len(rows[k])):
                one, two = rows[k][j], rows[i][j]
                rows[k][j], rows[i][j] = ca.if_else(swap, two, one), ca.if_else(swap, one, two)
        inverse.append(1 / rows[k][k])
        for i in range(k + 1, n):
            factor = rows[i][k] * inverse[k]
            for j in range(k + 1, len(rows[k])):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    X: list[list[ca.SX]] = [[] for _ in range(n)]
    for k in reversed(range(n)):
        for j in range(n, len(rows[k])):
            known = sum((rows[k][i] * X[i][j - n] for i in range(k + 1, n)), ca.SX(0))
            X[k].append((rows[k][j] - known) * inverse[k])
    return ca.vertcat(*[ca.horzcat(*row) for row in X])
