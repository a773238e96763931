// The patch of two shapes: the points by which they touch along a face, a line, or in one point.
#include <algorithm>

#include "geometry_nearest.hpp"

namespace geometry {

static const double NEARLY = 1e-3; // distance of points, over the extent of a patch, that is little

static void write(const Points &points, const int *order, int count, const double origin[3], Patch &out) {
    const Vec o = vec(origin);
    out.count = count;
    put(points.n, out.n);
    for (int k = 0; k < count; k++) {
        const int i = order ? order[k] : k;
        put(points.a[i] + o, out.a[k]), put(points.b[i] + o, out.b[k]), put(points.own[i], out.own[k]);
        out.gap[k] = points.gap[i], out.tag[k] = points.tag[i], out.fixed[k] = points.fixed[i];
    }
}

// The points; where there are too many the nearest, in their order.
static int finish(const Points &points, const double origin[3], Patch &out) {
    if (points.count >= FOUND) return TOO_MANY;
    if (points.count <= MOST) {
        write(points, nullptr, points.count, origin, out);
        return CERTAIN;
    }
    int order[FOUND];
    for (int k = 0; k < points.count; k++) order[k] = k;
    std::stable_sort(order, order + points.count, [&](int i, int j) { return points.gap[i] < points.gap[j]; });
    std::sort(order, order + MOST);
    write(points, order, MOST, origin, out);
    return CERTAIN;
}

static int one(const Closest &c, const double origin[3], Patch &out) {
    const Vec o = vec(origin);
    out.count = 1;
    put(c.n, out.n), put(c.n, out.own[0]), put(c.a + o, out.a[0]), put(c.b + o, out.b[0]);
    out.gap[0] = c.gap, out.tag[0] = c.tag, out.fixed[0] = c.fixed;
    return CERTAIN;
}

// Every vertex counts, tilted or not; of more than MOST the lowest.
static void vertices_over(const Shape &s, const Body &b, const Vec &n, double offset, const Vec &o, Patch &out) {
    const Vec m = b.R.back(n);
    const double at = dot(n, b.x) - offset;
    const int total = vertex_count(s);
    int chosen[MOST];
    double height[MOST];
    int count = 0;
    for (int i = 0; i < total; i++) {
        const double h = at + dot(m, vertex(s, i));
        if (count < MOST) {
            chosen[count] = i, height[count++] = h;
            continue;
        }
        int high = 0;
        for (int k = 1; k < MOST; k++) {
            if (height[k] > height[high]) high = k;
        }
        if (h < height[high]) {
            for (int k = high; k + 1 < MOST; k++) chosen[k] = chosen[k + 1], height[k] = height[k + 1];
            chosen[MOST - 1] = i, height[MOST - 1] = h;
        }
    }
    out.count = count;
    for (int k = 0; k < count; k++) {
        const Vec p = b.world(vertex(s, chosen[k]));
        put(p - height[k] * n + o, out.a[k]), put(p + o, out.b[k]), put(n, out.own[k]);
        out.gap[k] = height[k], out.tag[k] = 1000 + chosen[k], out.fixed[k] = 2;
    }
}

static int on_plane(const Body &a, const Body &b, const double origin[3], Patch &out) {
    if (b.shape->kind == HALFSPACE) return UNBOUNDED;
    const Vec n = a.R * vec(a.shape->par), o = vec(origin);
    const double offset = a.shape->par[3];
    put(n, out.n);
    if (b.shape->kind == POLYTOPE) {
        vertices_over(*b.shape, b, n, offset, o, out);
        return CERTAIN;
    }
    Flat flat;
    if (!flat_part(b, -n, 2, flat)) return TOO_MANY;
    out.count = flat.count;
    for (int k = 0; k < flat.count; k++) {
        const double gap = dot(n, flat.p[k]) - offset;
        put(flat.p[k] - gap * n + o, out.a[k]), put(flat.p[k] + o, out.b[k]), put(n, out.own[k]);
        out.gap[k] = gap;
        name_of(flat, k, out.tag[k], out.fixed[k]);
    }
    return CERTAIN;
}

// Points beside the closest ones, where those are nearer than the rest.
static void join(const Closest &found, double least, Points &points) {
    const double gap = dot(found.b - found.a, points.n);
    if (gap >= points.least() - least || points.count + 1 >= FOUND) return;
    double extent = 0;
    for (int k = 0; k < points.count; k++) extent = std::max(extent, length(points.b[k] - found.b));
    int count = 0;
    for (int k = 0; k < points.count; k++) {
        if (!(length(points.b[k] - found.b) > NEARLY * extent)) continue;
        points.a[count] = points.a[k], points.b[count] = points.b[k], points.gap[count] = points.gap[k];
        points.tag[count] = points.tag[k], points.fixed[count] = points.fixed[k], points.own[count] = points.own[k];
        count++;
    }
    points.a[count] = found.a, points.b[count] = found.b, points.own[count] = found.n, points.gap[count] = found.gap;
    points.tag[count] = found.tag, points.fixed[count] = found.fixed;
    points.count = count + 1;
}

static int with_flats(const Body &a, const Body &b, const Closest &found, double size, const double origin[3],
                      Patch &out) {
    Flat on_a, on_b;
    if (!flat_part(a, found.n, 1, on_a) || !flat_part(b, -found.n, 2, on_b)) return TOO_MANY;
    if (on_a.count < 2 || on_b.count < 2) return one(found, origin, out);
    Points points;
    if (!face_points(on_a, on_b, size, points) && !line_points(a, b, on_a, on_b, found.n, size, points)) {
        return one(found, origin, out);
    }
    if (points.count == 0 || points.least() > found.gap + SAME * size) return one(found, origin, out);
    join(found, EXACT * size, points);
    return finish(points, origin, out);
}

// One point of a body that is over a face of the other; false where it is not over it.
static bool point_on_face(const Flat &on_a, const Flat &on_b, const FaceAxis &face, double slack, Closest &out) {
    const Flat &own = face.owner == 1 ? on_a : on_b, &other = face.owner == 1 ? on_b : on_a;
    if (own.count < own.dim || other.count != 1 || !holds(own, other.p[0], slack)) return false;
    out.n = face.n, out.gap = face.apart, out.sole = false;
    const Vec p = other.p[0];
    out.a = face.owner == 1 ? p - out.gap * out.n : p;
    out.b = face.owner == 1 ? p : p + out.gap * out.n;
    name_of(other, 0, out.tag, out.fixed);
    return true;
}

static Closest lowest(const Points &points, const FaceAxis &face) {
    int low = 0;
    for (int k = 1; k < points.count; k++) {
        if (points.gap[k] < points.gap[low]) low = k;
    }
    return {face.apart, points.a[low], points.b[low], face.n, points.tag[low], points.fixed[low], false};
}

// Whether a face's separation -depth is the largest of all, by a disc of B - A at that depth round the foot of the
// origin: tilted by t from the face's normal a plane is depth cos t + r sin t away, which is more than depth up
// to tan(t / 2) = r / depth; for larger tilts a point of B - A far behind is outside.
static bool largest_by_face(const Body &a, const Body &b, const FaceAxis &face, double r) {
    const double depth = -face.apart;
    if (!(r > 5 * depth)) return false;
    for (int which = 0; which < 2; which++) {
        const Vec c = which ? farthest(b, face.n) - farthest(a, -face.n) : b.centre() - a.centre();
        const double behind = dot(c, face.n), beside = length(c - behind * face.n);
        if (0.92 * behind - 0.39 * beside > depth) return true;
    }
    return false;
}

// How far a point of the patch, where the bodies are nearest, is inside the face.
static double room(const Flat &own, const Points &points, const FaceAxis &face, double slack) {
    Vec sum = {0, 0, 0}, low = {0, 0, 0};
    double least = INFINITY, most = -INFINITY;
    for (int k = 0; k < points.count; k++) {
        const Vec p = face.owner == 1 ? points.a[k] : points.b[k];
        sum = sum + p;
        if (points.gap[k] < least) least = points.gap[k], low = p;
        most = std::max(most, points.gap[k]);
    }
    const double at_low = margin(own, low);
    return most - least > slack ? at_low : std::max(at_low, margin(own, (1.0 / points.count) * sum));
}

static int bounded_pair(const Body &a, const Body &b, const double origin[3], Patch &out) {
    const double size = std::min(a.shape->size, b.shape->size), slack = proof_slack(a, b, size);
    const bool straight = a.shape->kind == POLYTOPE && b.shape->kind == POLYTOPE;
    const FaceAxis face = best_face(a, b);
    Points points;
    points.count = 0;
    Closest found{};
    const Closest *on_face = nullptr;
    if (face.owner) {
        Flat on_a, on_b;
        if (!flat_part(a, face.n, 1, on_a) || !flat_part(b, -face.n, 2, on_b)) return TOO_MANY;
        const bool near = face.apart > -TOUCHING * size;
        if (on_a.count < 2 || on_b.count < 2) {
            if (point_on_face(on_a, on_b, face, slack, found)) {
                const double r = margin(face.owner == 1 ? on_a : on_b, face.owner == 1 ? found.a : found.b);
                if (near || largest_by_face(a, b, face, r)) return one(found, origin, out);
                on_face = &found;
            }
        } else if (face_points(on_a, on_b, size, points) && points.count > 0) {
            const double most = face.apart + (straight ? SAME * size : slack);
            if (points.least() <= most) {
                if (near) return finish(points, origin, out);
                const Flat &own = face.owner == 1 ? on_a : on_b;
                // (the points are over the very face whose separation is the largest)
                const bool over = length(points.n - face.n) < 1e-12 && points.least() <= face.apart + slack;
                if (over && largest_by_face(a, b, face, room(own, points, face, slack))) {
                    return finish(points, origin, out);
                }
                found = lowest(points, face);
                on_face = &found;
            }
        }
    }
    Closest nearest{};
    const int status = nearest_points(a, b, size, points.count ? &points : nullptr, face, on_face, nearest);
    return status ? status : with_flats(a, b, nearest, size, origin, out);
}

int patch(const Placed &a, const Placed &b, Patch &out) {
    const int kind_a = a.shape->kind, kind_b = b.shape->kind;
    if (kind_a == FOREIGN || kind_b == FOREIGN) return FOREIGN_SHAPE;
    if (kind_b == HALFSPACE) return UNBOUNDED;
    double sum = 0;
    for (int k = 0; k < 3; k++) sum += a.x[k] + b.x[k];
    for (int k = 0; k < 9; k++) sum += a.R[k] + b.R[k];
    if (!std::isfinite(sum)) return NOT_FINITE;
    const Body one = seen_from(a, a.x), two = seen_from(b, a.x);
    return kind_a == HALFSPACE ? on_plane(one, two, a.x, out) : bounded_pair(one, two, a.x, out);
}

} // namespace geometry
