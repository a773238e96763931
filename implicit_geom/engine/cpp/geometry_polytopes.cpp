// Crossing edges of two polytopes that overlap or touch: the axes across an edge of each.
#include <algorithm>

#include "geometry_closest.hpp"

namespace geometry {

static const int DIRECTIONS = 96; // different directions of edges of one body
static const int WORK = 4000;     // axes times vertices, thousands
static const double SAME_LINE = 1e-12; // sine squared between edges of one direction

struct Edges {
    int count;
    Vec along[DIRECTIONS]; // world
};

static bool directions_of(const Body &body, Edges &out) {
    const Shape &s = *body.shape;
    out.count = 0;
    for (int f = 0; f < face_count(s); f++) {
        for (int k = s.start[f]; k < s.start[f + 1]; k++) {
            const int i = s.ring[k], j = s.ring[k + 1 < s.start[f + 1] ? k + 1 : s.start[f]];
            if (i > j) continue;
            const Vec u = unit(vertex(s, j) - vertex(s, i), {1, 0, 0});
            bool seen = false;
            for (int c = 0; c < out.count && !seen; c++) {
                const Vec m = cross(u, out.along[c]);
                seen = dot(m, m) < SAME_LINE;
            }
            if (seen) continue;
            if (out.count == DIRECTIONS) return false;
            out.along[out.count++] = u;
        }
    }
    for (int c = 0; c < out.count; c++) out.along[c] = body.R * out.along[c];
    return true;
}

// The edges of a body along u that are farthest along n; by their vertices.
static int farthest_edges(const Body &body, const Vec &u, const Vec &n, int (*out)[2], int most) {
    const Shape &s = *body.shape;
    const Vec m = body.R.back(n), v = body.R.back(u);
    const double level = dot(m, farthest(s, m)) - 1e-9 * s.size;
    int count = 0;
    for (int f = 0; f < face_count(s); f++) {
        for (int k = s.start[f]; k < s.start[f + 1]; k++) {
            const int i = s.ring[k], j = s.ring[k + 1 < s.start[f + 1] ? k + 1 : s.start[f]];
            if (i > j || count == most) continue;
            const Vec p = vertex(s, i), q = vertex(s, j), w = cross(q - p, v);
            if (dot(m, p) < level || dot(m, q) < level || dot(w, w) > 1e-10 * dot(q - p, q - p)) continue;
            out[count][0] = i, out[count++][1] = j;
        }
    }
    return count;
}

bool closest_edges(const Body &a, const Body &b, double size, double above, Closest &out) {
    Edges ea, eb;
    if (a.shape->dim == 2 || !directions_of(a, ea) || !directions_of(b, eb)) return false;
    if (ea.count * eb.count * (vertex_count(*a.shape) + vertex_count(*b.shape)) > 1000 * WORK) return false;
    const Vec between = b.centre() - a.centre();
    double best = above;
    Vec n = {0, 0, 0}, ua = n, ub = n;
    for (int i = 0; i < ea.count; i++) {
        for (int j = 0; j < eb.count; j++) {
            const Vec m = cross(ea.along[i], eb.along[j]);
            const double mm = dot(m, m);
            if (mm < 1e-20) continue;
            Vec e = (1 / std::sqrt(mm)) * m;
            // (overlapping a little, the separation is largest on the side of the other's centre)
            const bool both = std::fabs(dot(e, between)) < 0.1 * length(between);
            if (dot(e, between) < 0) e = -e;
            for (int side = 0; side < (both ? 2 : 1); side++, e = -e) {
                const double apart = separation(a, b, e);
                if (apart > best) best = apart, n = e, ua = ea.along[i], ub = eb.along[j];
            }
        }
    }
    if (!(best > above)) return false;
    int on_a[8][2], on_b[8][2];
    const int many_a = farthest_edges(a, ua, n, on_a, 8), many_b = farthest_edges(b, ub, -n, on_b, 8);
    for (int i = 0; i < many_a; i++) {
        for (int j = 0; j < many_b; j++) {
            const Local la = edge_of(*a.shape, on_a[i][0], on_a[i][1]), lb = edge_of(*b.shape, on_b[j][0], on_b[j][1]);
            if (closest_of(a, la, b, lb, n, a.world(la.point), b.world(lb.point), size, out)) return true;
        }
    }
    return false;
}

} // namespace geometry
