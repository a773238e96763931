// Gilbert, Johnson and Keerthi's method: bounds for the distance of two convex bodies from support points.
#include "geometry_closest.hpp"

namespace geometry {

static const int STEPS = 60;

// The point of a segment, triangle or tetrahedron nearest the origin, by its weights; kept: those above zero.
struct Nearest {
    double weight[4] = {0, 0, 0, 0};
    double far = INFINITY; // squared distance
};

static void take(Nearest &best, const Vec *w, int count, const int *at, const double *weight) {
    Vec v = {0, 0, 0};
    for (int k = 0; k < count; k++) v = v + weight[k] * w[at[k]];
    const double far = dot(v, v);
    if (!(far < best.far)) return;
    best = Nearest();
    best.far = far;
    for (int k = 0; k < count; k++) best.weight[at[k]] = weight[k];
}

static void of_segment(const Vec *w, int i, int j, Nearest &best) {
    const Vec d = w[j] - w[i];
    const double dd = dot(d, d), t = dd > 0 ? clamp(-dot(w[i], d) / dd, 0, 1) : 0;
    const int at[2] = {i, j};
    const double weight[2] = {1 - t, t};
    take(best, w, 2, at, weight);
}

static void of_triangle(const Vec *w, int i, int j, int k, Nearest &best) {
    const Vec u = w[j] - w[i], v = w[k] - w[i], m = cross(u, v);
    const double mm = dot(m, m);
    if (mm > 0) {
        // weights of the foot of the origin: areas over the whole
        const double x = dot(cross(w[j], w[k]), m) / mm, y = dot(cross(w[k], w[i]), m) / mm, z = 1 - x - y;
        if (x >= 0 && y >= 0 && z >= 0) {
            const int at[3] = {i, j, k};
            const double weight[3] = {x, y, z};
            take(best, w, 3, at, weight);
            return;
        }
    }
    of_segment(w, i, j, best);
    of_segment(w, j, k, best);
    of_segment(w, k, i, best);
}

static bool inside_tetrahedron(const Vec *w) {
    const double whole = dot(w[1] - w[0], cross(w[2] - w[0], w[3] - w[0]));
    const double x0 = dot(w[1], cross(w[2], w[3])), x1 = -dot(w[0], cross(w[2], w[3]));
    const double x2 = dot(w[0], cross(w[1], w[3])), x3 = -dot(w[0], cross(w[1], w[2]));
    const double sides = length(w[1] - w[0]) * length(w[2] - w[0]) * length(w[3] - w[0]);
    if (!(std::fabs(whole) > 1e-13 * sides)) return false;
    const double s = whole > 0 ? 1 : -1;
    return s * x0 >= 0 && s * x1 >= 0 && s * x2 >= 0 && s * x3 >= 0;
}

void Simplex::begin(const Body &first, const Body &second, const Vec &towards, const Vec &moved, double size) {
    a = &first, b = &second, shift = moved, scale = size;
    radius_a = core_radius(*first.shape), radius_b = core_radius(*second.shape), radii = radius_a + radius_b;
    count = 0, lower = -INFINITY, overlapping = finished = false;
    v = best = towards;
}

void Simplex::points(const Vec &n, Vec &p, Vec &q) const {
    p = radius_a * n, q = -radius_b * n;
    for (int k = 0; k < count; k++) p = p + weight[k] * on_a[k], q = q + weight[k] * on_b[k];
}

void Simplex::run(double eps) {
    for (int step = 0; step < STEPS && !finished; step++) {
        const double upper = length(v);
        if (count > 0 && upper - lower <= eps * scale) return;
        const Vec n = unit(v, {1, 0, 0});
        const Vec p = farthest(*a, n) - radius_a * n, q = farthest(*b, -n) + radius_b * n, far = q + shift - p;
        const double apart = dot(n, far);
        if (apart > lower) lower = apart, best = n;
        for (int k = 0; k < count; k++) {
            const Vec away = far - w[k];
            if (dot(away, away) <= 1e-30 * scale * scale) finished = true;
        }
        if (count > 0 && upper - lower <= eps * scale) return;
        if (finished) return;
        w[count] = far, on_a[count] = p, on_b[count] = q, count++;
        Nearest nearest;
        if (count == 1) {
            nearest.weight[0] = 1, nearest.far = dot(far, far);
        } else if (count == 2) {
            of_segment(w, 0, 1, nearest);
        } else if (count == 3) {
            of_triangle(w, 0, 1, 2, nearest);
        } else if (inside_tetrahedron(w)) {
            overlapping = finished = true;
            return;
        } else {
            of_triangle(w, 0, 1, 2, nearest);
            of_triangle(w, 0, 1, 3, nearest);
            of_triangle(w, 0, 2, 3, nearest);
            of_triangle(w, 1, 2, 3, nearest);
        }
        const double before = count > 1 ? dot(v, v) : INFINITY;
        int kept = 0;
        v = {0, 0, 0};
        for (int k = 0; k < count; k++) {
            if (!(nearest.weight[k] > 0)) continue;
            w[kept] = w[k], on_a[kept] = on_a[k], on_b[kept] = on_b[k], weight[kept] = nearest.weight[k];
            v = v + weight[kept] * w[kept];
            kept++;
        }
        count = kept;
        if (dot(v, v) <= 1e-28 * scale * scale) overlapping = finished = true;
        else if (!(dot(v, v) < before)) finished = true;
    }
}

} // namespace geometry
