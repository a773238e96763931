"""Contact problems, solutions and guesses as HDF5 in the layout of FCLIB, the Frictional Contact Library.

    /fclib_global            spacedim, M, H[, G], vectors/{f, w, mu[, b]}
                             M v = H r + G l + f,  u = H^T v + w,  G^T v + b = 0
    /fclib_global_rolling    the same with vectors/mu_r, spacedim 5
    /fclib_local             spacedim, W[, V, R], vectors/{q, mu[, s]}
                             u = W r + V l + q,  V^T r + R l + s = 0
    /implicit_geom_global    as fclib_global with vectors/e: friction ellipsoids and torsion, which FCLIB does
                             not have; other programs find no problem there, rather than another one
    /solution                u, r[, v, l]
    /guesses                 number_of_guesses, 1/{u, r[, v, l]}, ...

A sparse matrix is a group m, n, nz, nzmax, p, i, x: nz >= 0 are triplets (rows p, columns i), -1 compressed
columns, -2 compressed rows. Everything is a dataset, nothing an attribute.

reader_program   the process of its own that asks HDF5
arrays           what it found, each array checked when it is asked for
conversion       arrays to a `ContactProblem` and back
files            reading and writing
"""
