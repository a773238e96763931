// Closest points: from a simplex of support points to features, to Newton's method, to a proof.
#include "geometry_nearest.hpp"

#include <algorithm>

#include "geometry_hull.hpp"

namespace geometry {

static const double SHALLOW = 0.3;  // overlap, over the smaller size, up to which it is looked for
static const double BOUNDS[] = {3e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-14}; // over the smaller size
static const int FOLLOWED = 12;     // faces of a hull, likewise
static const int TRIED = 3;         // directions that are followed up where the bodies overlap

// Directions to look along where bodies overlap: the line of centres, their axes, and some all round.
static int directions(const Body &a, const Body &b, Vec *out) {
    int count = 0;
    const Vec between = b.centre() - a.centre();
    out[count++] = unit(between, {1, 0, 0});
    const int dim = a.shape->dim;
    for (const Body *body : {&a, &b}) {
        for (int k = 0; k < dim; k++) {
            const Vec axis = {body->R.m[k], body->R.m[3 + k], body->R.m[6 + k]};
            out[count++] = axis, out[count++] = -axis;
        }
    }
    const Vec n = out[0];
    Vec e, f;
    across(n, e, f);
    if (dim == 2) e = {-n.y, n.x, 0}, f = e;
    // round the line of centres: two rings
    for (int ring = 1; ring <= 2; ring++) {
        for (int k = 0; k < (dim == 2 ? 2 : 6); k++) {
            const double turn = dim == 2 ? k * M_PI : (k + 0.5 * ring) * M_PI / 3, tilt = ring * 0.5;
            const Vec d = std::cos(turn) * e + (dim == 2 ? 0 : std::sin(turn)) * f;
            out[count++] = std::cos(tilt) * n + std::sin(tilt) * d;
        }
    }
    return count;
}

static void keep(Closest &best, bool &any, const Closest &one) {
    if (!any || one.gap > best.gap) best = one, any = true;
}

// Bodies moved apart along n have a simplex of their own: its points tell the features that touch.
static bool followed(const Body &a, const Body &b, const Vec &n, double apart, double size, Closest &out) {
    const double radii = core_radius(*a.shape) + core_radius(*b.shape);
    const Vec moved = std::max(0.05 * size - radii - apart, 0.0) * n;
    Simplex simplex;
    simplex.begin(a, b, n, moved, size);
    for (double eps : {1e-3, 1e-6, 1e-10}) {
        simplex.run(eps);
        if (simplex.overlapping) return false;
        Vec p, q;
        const Vec m = unit(simplex.v, n);
        simplex.points(m, p, q);
        if (closest_near(a, b, m, p, q, size, out)) return true;
        if (simplex.finished) break;
    }
    return false;
}

// The best of what a hull of support points leaves possible.
static void from_hull(const Body &a, const Body &b, double size, const Vec *d, int count, Closest &best, bool &any,
                      double &seen) {
    Hull hull;
    if (!hull.begin(a, b, size, d, count)) return;
    Closest one;
    hull.expand(1e-3 * std::max(hull.upper, 0.0) + 1e-12 * size);
    seen = std::max(seen, -hull.upper);
    bool tried[Hull::FACES] = {};
    for (int k = 0; k < FOLLOWED; k++) {
        const double least = any ? -best.gap : hull.upper + 1e-9 * size;
        const int f = hull.nearest(tried, least - 1e-13 * size);
        if (f < 0) return;
        tried[f] = true;
        Vec p, q;
        hull.points(f, p, q);
        const Vec n = -hull.face[f].n;
        bool found = closest_near(a, b, n, p, q, size, one);
        if (!found || one.gap < seen - 1e-9 * size) found = followed(a, b, n, -hull.face[f].offset, size, one) || found;
        if (found) keep(best, any, one);
    }
}

static int overlapping(const Body &a, const Body &b, double size, const Simplex &simplex, const FaceAxis &face,
                       const Closest *on_face, Closest &out) {
    bool any = false;
    Closest best{}, one;
    double seen = face.owner ? face.apart : -INFINITY; // no answer may be below what was met
    if (on_face) keep(best, any, *on_face);
    const bool straight = a.shape->kind == POLYTOPE && b.shape->kind == POLYTOPE;
    // (of polytopes the largest separation is across a face or two edges)
    if (straight && closest_edges(a, b, size, seen, one)) keep(best, any, one);
    if (!straight || !any) {
        Vec d[32];
        double apart[32];
        int count = directions(a, b, d);
        if (simplex.lower > -INFINITY) d[count++] = simplex.best;
        if (face.owner) d[count++] = face.n;
        for (int k = 0; k < count; k++) apart[k] = separation(a, b, d[k]);
        bool sure = false;
        for (int tried = 0; tried < TRIED && !sure; tried++) {
            int k = -1;
            for (int i = 0; i < count; i++) {
                if (apart[i] > -INFINITY && (k < 0 || apart[i] > apart[k])) k = i;
            }
            if (k < 0) break;
            seen = std::max(seen, apart[k]);
            bool found = closest_near(a, b, d[k], farthest(a, d[k]), farthest(b, -d[k]), size, one);
            if (found && one.gap < seen - 1e-12 * size) found = false; // (elsewhere: a saddle)
            if (!found) found = followed(a, b, d[k], apart[k], size, one);
            if (found) keep(best, any, one);
            // (touching: there is no other)
            sure = found && (one.sole || (one.gap > -TOUCHING * size && one.gap >= seen - proof_slack(a, b, size)));
            const Vec chosen = d[k];
            for (int i = 0; i < count; i++) {
                if (dot(d[i], chosen) > 0.9) apart[i] = -INFINITY;
            }
        }
        if (!sure && a.shape->dim == 3) from_hull(a, b, size, d, count, best, any, seen);
    }
    if (!any || (!best.sole && best.gap < seen - 10 * proof_slack(a, b, size))) return NOT_PROVEN;
    if (best.gap < -SHALLOW * size) return DEEP;
    out = best;
    return CERTAIN;
}

int nearest_points(const Body &a, const Body &b, double size, const Points *hint, const FaceAxis &face,
                   const Closest *on_face, Closest &out) {
    const double touching = -TOUCHING * size;
    if (hint && hint->count > 0) {
        int low = 0;
        for (int k = 1; k < hint->count; k++) {
            if (hint->gap[k] < hint->gap[low]) low = k;
        }
        if (closest_near(a, b, hint->n, hint->a[low], hint->b[low], size, out) && out.gap >= touching) return CERTAIN;
    }
    Simplex simplex;
    const Vec between = b.centre() - a.centre();
    simplex.begin(a, b, unit(between, {1, 0, 0}), {0, 0, 0}, size);
    const bool straight = a.shape->kind == POLYTOPE && b.shape->kind == POLYTOPE;
    for (double eps : BOUNDS) {
        if (straight && eps > 1e-6) continue; // (few steps lead to the very features)
        simplex.run(eps);
        if (simplex.overlapping || simplex.count == 0) break;
        Vec p, q;
        const Vec n = unit(simplex.v, between);
        simplex.points(n, p, q);
        if (closest_near(a, b, n, p, q, size, out) && (out.sole || out.gap >= touching)) return CERTAIN;
        if (simplex.finished) break;
    }
    if (simplex.lower - simplex.radii > 1e-9 * size) {
        // apart: once more from the best direction met
        const Vec n = simplex.best;
        if (closest_near(a, b, n, farthest(a, n), farthest(b, -n), size, out) && out.gap >= touching) return CERTAIN;
        return NOT_PROVEN;
    }
    const Vec n = simplex.best;
    if (!straight && followed(a, b, n, simplex.lower - simplex.radii, size, out) && out.sole) {
        return CERTAIN;
    }
    return overlapping(a, b, size, simplex, face, on_face, out);
}

} // namespace geometry
