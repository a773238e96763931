// Farthest points of every kind of shape, and how far a point is outside.
#include "geometry_support.hpp"

#include <algorithm>

namespace geometry {

Body seen_from(const Placed &placed, const double origin[3]) {
    Body body{placed.shape, vec(placed.x) - vec(origin), {}};
    for (int k = 0; k < 9; k++) body.R.m[k] = placed.R[k];
    return body;
}

Vec semi_axes(const Shape &s) {
    return {s.par[0], s.par[1], s.dim == 2 ? std::min(s.par[0], s.par[1]) : s.par[2]};
}

static Vec of_superellipsoid(const Shape &s, const Vec &d) {
    const Vec a = semi_axes(s);
    const double p = s.par[3];
    double t[3] = {std::fabs(d.x) * a.x, std::fabs(d.y) * a.y, std::fabs(d.z) * a.z};
    const double most = std::max(t[0], std::max(t[1], t[2]));
    if (!(most > 0)) return {a.x, 0, 0};
    double sum = 0;
    for (double &v : t) {
        // x ~ (a d)^(1 / (p - 1)), and x^p = x (a d)
        const double scaled = v / most;
        v = scaled > 0 ? std::pow(scaled, 1 / (p - 1)) : 0;
        sum += v * scaled;
    }
    const double f = std::pow(sum, -1 / p);
    return {std::copysign(a.x * t[0] * f, d.x), std::copysign(a.y * t[1] * f, d.y),
            std::copysign(a.z * t[2] * f, d.z)};
}

static Vec of_vertices(const Shape &s, const Vec &d) {
    const double *v = s.vertices.data();
    const int count = vertex_count(s);
    int best = 0;
    double most = -INFINITY;
    for (int i = 0; i < count; i++) {
        const double h = v[3 * i] * d.x + v[3 * i + 1] * d.y + v[3 * i + 2] * d.z;
        if (h > most) most = h, best = i;
    }
    return vertex(s, best);
}

static double sign(double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; }

Vec farthest(const Shape &s, const Vec &d) {
    switch (s.kind) {
    case SPHERE: return s.par[0] * unit(d, {1, 0, 0});
    case ELLIPSOID: {
        const Vec a = semi_axes(s);
        const Vec u = unit({a.x * d.x, a.y * d.y, a.z * d.z}, {1, 0, 0});
        return {a.x * u.x, a.y * u.y, a.z * u.z};
    }
    case SUPERELLIPSOID: return of_superellipsoid(s, d);
    case CAPSULE: {
        const Vec u = s.par[0] * unit(d, {1, 0, 0});
        return {u.x, u.y, u.z + sign(d.z) * s.par[1] / 2};
    }
    case CYLINDER: {
        const double rho = std::sqrt(d.x * d.x + d.y * d.y), f = rho > 0 ? s.par[0] / rho : 0.0;
        return {f * d.x, f * d.y, sign(d.z) * s.par[1] / 2};
    }
    case CONE: {
        const double rho = std::sqrt(d.x * d.x + d.y * d.y), f = rho > 0 ? s.par[0] / rho : 0.0;
        if (d.z * s.par[1] > s.par[0] * rho) return {0, 0, s.par[1]};
        return {f * d.x, f * d.y, 0};
    }
    case POLYTOPE: return of_vertices(s, d);
    default: return {NAN, NAN, NAN};
    }
}

void support(const Placed &a, const double d[3], double out[3]) {
    Body body{a.shape, vec(a.x), {}};
    for (int k = 0; k < 9; k++) body.R.m[k] = a.R[k];
    put(farthest(body, vec(d)), out);
}

// (sum |y_i / a_i|^p)^(1/p), without overflow
static double power_norm(const Vec &y, const Vec &a, double p) {
    const double t[3] = {std::fabs(y.x) / a.x, std::fabs(y.y) / a.y, std::fabs(y.z) / a.z};
    const double most = std::max(t[0], std::max(t[1], t[2]));
    if (!(most > 0)) return 0;
    double sum = 0;
    for (double v : t) sum += v > 0 ? std::pow(v / most, p) : 0;
    return most * std::pow(sum, 1 / p);
}

double outside(const Shape &s, const Vec &y) {
    const double rho = std::sqrt(y.x * y.x + y.y * y.y);
    switch (s.kind) {
    case SPHERE: return length(y) - s.par[0];
    case ELLIPSOID:
    case SUPERELLIPSOID: {
        // (N - 1) / |grad N|: to first order the distance
        const Vec a = semi_axes(s);
        const double p = s.kind == ELLIPSOID ? 2.0 : s.par[3], N = power_norm(y, a, p);
        if (!(N > 0)) return -std::min(a.x, std::min(a.y, a.z));
        Vec g;
        if (p == 2) {
            g = {y.x / (a.x * a.x) / N, y.y / (a.y * a.y) / N, y.z / (a.z * a.z) / N};
        } else {
            g = {std::pow(std::fabs(y.x) / a.x / N, p - 1) / a.x, std::pow(std::fabs(y.y) / a.y / N, p - 1) / a.y,
                 std::pow(std::fabs(y.z) / a.z / N, p - 1) / a.z};
        }
        return (N - 1) / std::max(length(g), 1e-300);
    }
    case CAPSULE: {
        const double beyond = std::max(std::fabs(y.z) - s.par[1] / 2, 0.0);
        return std::sqrt(rho * rho + beyond * beyond) - s.par[0];
    }
    case CYLINDER: return std::max(rho - s.par[0], std::fabs(y.z) - s.par[1] / 2);
    case CONE: return std::max((rho * s.par[1] + (y.z - s.par[1]) * s.par[0]) / std::hypot(s.par[0], s.par[1]), -y.z);
    case POLYTOPE: {
        double most = -INFINITY;
        for (int f = 0; f < face_count(s); f++) {
            const double *m = &s.planes[4 * static_cast<size_t>(f)];
            most = std::max(most, m[0] * y.x + m[1] * y.y + m[2] * y.z - m[3]);
        }
        return most;
    }
    default: return INFINITY;
    }
}

double rolling_radius(const Shape &s) {
    if (s.kind == SPHERE || s.kind == CAPSULE) return s.par[0];
    if (s.kind != ELLIPSOID && s.kind != SUPERELLIPSOID) return 0;
    const Vec a = semi_axes(s);
    const double low = std::min(a.x, std::min(a.y, a.z)), high = std::max(a.x, std::max(a.y, a.z));
    if (s.kind == ELLIPSOID) return low * low / high;
    // of N = (sum |x / a|^p)^(1/p): |Hess| <= (p - 1) / low^2, and |grad| >= 1 / |x|
    return low * low / ((s.par[3] - 1) * length(a));
}

double violation(const Shape &s, const Vec &y) {
    if (s.kind != CAPSULE && s.kind != CYLINDER) return outside(s, y);
    const double half = s.par[1] / 2, rho2 = y.x * y.x + y.y * y.y, r = s.par[0];
    const double beyond = std::max(std::fabs(y.z) - half, 0.0);
    if (s.kind == CAPSULE) return (rho2 + beyond * beyond) / (2 * r) - r / 2;
    return std::max(rho2 / (2 * r) - r / 2, std::fabs(y.z) - half);
}

} // namespace geometry
