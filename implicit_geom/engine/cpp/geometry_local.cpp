// Which features of a shape are near a point of its surface.
#include <algorithm>

#include "geometry_closest.hpp"

namespace geometry {

static const double NEAR_END = 0.01; // of the height: where an end is likelier than the side

static Local local(const Shape &s, int kind) {
    return {kind, 0, {0, 0, 0}, {0, 0, 1}, 0, 0, &s, -1, -1};
}

Local corner_of(const Shape &s, int i) {
    Local out = local(s, POINT);
    out.point = vertex(s, i), out.from = i;
    return out;
}

Local edge_of(const Shape &s, int i, int j) {
    Local out = local(s, LINE);
    const Vec d = vertex(s, j) - vertex(s, i);
    out.point = vertex(s, i), out.reach = length(d), out.along = unit(d, {1, 0, 0}), out.from = i, out.to = j;
    return out;
}

static Local circle(const Shape &s, double z) {
    Local out = local(s, CIRCLE);
    out.reach = s.par[0], out.height = z;
    return out;
}

static Local axis(const Shape &s) {
    Local out = local(s, LINE);
    out.radius = s.par[0], out.point = {0, 0, -s.par[1] / 2}, out.reach = s.par[1];
    return out;
}

static int of_capsule(const Shape &s, const Vec &y, Local *out) {
    const double half = s.par[1] / 2;
    Local end = local(s, POINT);
    end.radius = s.par[0], end.point = {0, 0, y.z < 0 ? -half : half};
    if (half == 0) {
        out[0] = end;
        return 1;
    }
    const bool beyond = std::fabs(y.z) > half;
    out[beyond ? 1 : 0] = axis(s), out[beyond ? 0 : 1] = end;
    return 2;
}

static int of_cylinder(const Shape &s, const Vec &y, const Vec &m, Local *out) {
    const double half = s.par[1] / 2;
    if (half == 0) {
        out[0] = circle(s, 0);
        return 1;
    }
    const double up = y.z != 0 ? y.z : m.z;
    const bool side = std::fabs(y.z) < (1 - NEAR_END) * half || std::fabs(m.z) < 1e-6;
    out[side ? 0 : 1] = axis(s), out[side ? 1 : 0] = circle(s, up < 0 ? -half : half);
    return 2;
}

static int of_cone(const Shape &s, const Vec &y, Local *out) {
    const Local side = local(s, CONE_SIDE), base = circle(s, 0);
    Local apex = local(s, POINT);
    apex.point = {0, 0, s.par[1]}, apex.from = 0;
    if (y.z > (1 - NEAR_END) * s.par[1]) out[0] = apex, out[1] = side, out[2] = base;
    else if (y.z < NEAR_END * s.par[1]) out[0] = base, out[1] = side, out[2] = apex;
    else out[0] = side, out[1] = y.z < s.par[1] / 2 ? base : apex, out[2] = y.z < s.par[1] / 2 ? apex : base;
    return 3;
}

// An edge across m near y is likely; of several at a corner the one that is most nearly across.
static int of_polytope(const Shape &s, const Vec &y, const Vec &m, Local *out) {
    int corner = 0;
    double nearest = INFINITY;
    for (int i = 0; i < vertex_count(s); i++) {
        const Vec d = vertex(s, i) - y;
        const double far = dot(d, d);
        if (far < nearest) nearest = far, corner = i;
    }
    out[0] = corner_of(s, corner);
    if (s.dim == 2) return 1;
    constexpr int EDGES = FEATURES - 1;
    double score[EDGES] = {INFINITY, INFINITY, INFINITY};
    int from[EDGES] = {-1, -1, -1}, to[EDGES] = {-1, -1, -1};
    const int faces = face_count(s);
    for (int f = 0; f < faces; f++) {
        for (int k = s.start[f]; k < s.start[f + 1]; k++) {
            const int i = s.ring[k], j = s.ring[k + 1 < s.start[f + 1] ? k + 1 : s.start[f]];
            if (i > j) continue;
            const Vec p = vertex(s, i), d = vertex(s, j) - p;
            const double dd = dot(d, d);
            if (!(dd > 0)) continue;
            const Vec away = y - p - clamp(dot(y - p, d) / dd, 0, 1) * d;
            const double now = length(away) + 0.1 * s.size * std::fabs(dot(d, m)) / std::sqrt(dd);
            if (!(now < score[EDGES - 1])) continue;
            int at = EDGES - 1;
            for (; at > 0 && now < score[at - 1]; at--) {
                score[at] = score[at - 1], from[at] = from[at - 1], to[at] = to[at - 1];
            }
            score[at] = now, from[at] = i, to[at] = j;
        }
    }
    // a corner before the edges only where the point is at it
    const bool at_corner = nearest <= 1e-4 * s.size * s.size;
    int count = 0;
    if (at_corner) out[count++] = corner_of(s, corner);
    for (int k = 0; k < EDGES; k++) {
        if (from[k] >= 0) out[count++] = edge_of(s, from[k], to[k]);
        if (k == 0 && !at_corner) out[count++] = corner_of(s, corner);
    }
    return count;
}

int features_at(const Shape &s, const Vec &y, const Vec &m, Local out[FEATURES]) {
    switch (s.kind) {
    case SPHERE: out[0] = local(s, POINT), out[0].radius = s.par[0]; return 1;
    case CAPSULE: return of_capsule(s, y, out);
    case CYLINDER: return of_cylinder(s, y, m, out);
    case CONE: return of_cone(s, y, out);
    case POLYTOPE: return of_polytope(s, y, m, out);
    default: out[0] = local(s, SMOOTH); return 1;
    }
}

} // namespace geometry
