// Vectors of three and matrices of three by three, row by row; small dense systems.
#pragma once
#include <cmath>

namespace la {

inline double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline double length(const double *a) { return std::sqrt(dot(a, a)); }
inline void cross(const double *a, const double *b, double *out) {
    const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    out[0] = x, out[1] = y, out[2] = z;
}
inline void subtract(const double *a, const double *b, double *out) {
    for (int i = 0; i < 3; ++i) out[i] = a[i] - b[i];
}
inline void copy(const double *a, double *out, int n = 3) {
    for (int i = 0; i < n; ++i) out[i] = a[i];
}
inline void zero(double *a, int n) {
    for (int i = 0; i < n; ++i) a[i] = 0.0;
}
// A x
inline void times(const double *A, const double *x, double *out) {
    const double a = dot(A, x), b = dot(A + 3, x), c = dot(A + 6, x);
    out[0] = a, out[1] = b, out[2] = c;
}
// A^T x
inline void transposed_times(const double *A, const double *x, double *out) {
    double r[3];
    for (int i = 0; i < 3; ++i) r[i] = A[i] * x[0] + A[3 + i] * x[1] + A[6 + i] * x[2];
    copy(r, out);
}
// A B
inline void product(const double *A, const double *B, double *out) {
    double r[9];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) r[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
    copy(r, out, 9);
}
// A B A^T
inline void congruent(const double *A, const double *B, double *out) {
    double r[9];
    product(A, B, r);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) out[3 * i + j] = dot(r + 3 * i, A + 3 * j);
}
inline bool inverse(const double *A, double *out) {
    double c[9];
    cross(A + 3, A + 6, c), cross(A + 6, A, c + 3), cross(A, A + 3, c + 6);
    const double d = dot(A, c);
    if (!(std::fabs(d) > 0)) return false;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) out[3 * i + j] = c[3 * j + i] / d;
    return true;
}

// LU of a small matrix with row exchanges, in place, rows of length n; false where it is singular.
inline bool factorise(double *A, int *pivot, int n) {
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int i = k + 1; i < n; ++i)
            if (std::fabs(A[i * n + k]) > std::fabs(A[best * n + k])) best = i;
        pivot[k] = best;
        if (best != k)
            for (int j = 0; j < n; ++j) {
                const double t = A[k * n + j];
                A[k * n + j] = A[best * n + j], A[best * n + j] = t;
            }
        const double d = A[k * n + k];
        if (!(std::fabs(d) > 0)) return false;
        for (int i = k + 1; i < n; ++i) {
            const double f = A[i * n + k] /= d;
            if (f != 0)
                for (int j = k + 1; j < n; ++j) A[i * n + j] -= f * A[k * n + j];
        }
    }
    return true;
}
// x of A x = b by that LU, in place; `stride` between the entries of b.
inline void substitute(const double *LU, const int *pivot, int n, double *b, int stride = 1) {
    for (int k = 0; k < n; ++k) {
        const int i = pivot[k];
        if (i != k) {
            const double t = b[k * stride];
            b[k * stride] = b[i * stride], b[i * stride] = t;
        }
    }
    for (int k = 0; k < n; ++k)
        for (int i = k + 1; i < n; ++i) b[i * stride] -= LU[i * n + k] * b[k * stride];
    for (int k = n - 1; k >= 0; --k) {
        for (int j = k + 1; j < n; ++j) b[k * stride] -= LU[k * n + j] * b[j * stride];
        b[k * stride] /= LU[k * n + k];
    }
}

} // namespace la
