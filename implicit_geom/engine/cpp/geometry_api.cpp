// The geometry for other languages: plain numbers in and out.
#include "geometry.hpp"

#include <algorithm>
#include <new>

using namespace geometry;

static Placed placed(const void *shape, const double *x, const double *R) {
    Placed out{static_cast<const Shape *>(shape), {0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    std::copy(x, x + 3, out.x);
    std::copy(R, R + 9, out.R);
    return out;
}

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

extern "C" {

// A shape to be given back to `ig_shape_free`; null where there is no memory.
void *ig_shape_new(int kind, int dim, const double *par, double size, const double *inside, int vertices,
                   const double *vertex, int planes, const double *plane, const int *ring, const int *start) {
    try {
        Shape *s = new Shape{};
        s->dim = dim, s->kind = kind, s->size = size;
        std::copy(par, par + 4, s->par);
        std::copy(inside, inside + 3, s->inside);
        if (kind == POLYTOPE) {
            s->vertices.assign(vertex, vertex + 3 * static_cast<long>(vertices));
            s->planes.assign(plane, plane + 4 * static_cast<long>(planes));
            s->start.assign(start, start + planes + 1);
            s->ring.assign(ring, ring + start[planes]);
        }
        return s;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void ig_shape_free(void *shape) { delete static_cast<Shape *>(shape); }

// Patch of two placed shapes: x (3), R (9, row by row). Out: count, n (3), a, b (MOST, 3), gap, tag, fixed.
int ig_patch(const void *a, const double *x_a, const double *R_a, const void *b, const double *x_b,
             const double *R_b, int *count, double *n, double *point_a, double *point_b, double *gap, int *tag,
             int *fixed) {
    Patch out;
    out.count = 0;
    const int status = patch(placed(a, x_a, R_a), placed(b, x_b, R_b), out);
    *count = status ? 0 : out.count;
    if (status) return status;
    std::copy(out.n, out.n + 3, n);
    for (int k = 0; k < out.count; k++) {
        std::copy(out.a[k], out.a[k] + 3, point_a + 3 * k);
        std::copy(out.b[k], out.b[k] + 3, point_b + 3 * k);
        gap[k] = out.gap[k], tag[k] = out.tag[k], fixed[k] = out.fixed[k];
    }
    return status;
}

// The same `times` over, for measuring.
int ig_patch_times(const void *a, const double *x_a, const double *R_a, const void *b, const double *x_b,
                   const double *R_b, int times) {
    Patch out;
    int status = 0;
    const Placed one = placed(a, x_a, R_a), two = placed(b, x_b, R_b);
    for (int k = 0; k < times; k++) status += patch(one, two, out) != 0;
    return status;
}

// Farthest point along d, world axes.
void ig_support(const void *a, const double *x, const double *R, const double *d, double *out) {
    support(placed(a, x, R), d, out);
}
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
