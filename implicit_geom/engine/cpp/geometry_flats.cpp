// What two flat parts that face each other share, by its extreme points.
//
// The prism over the one part, along its normal, cuts out of the other what is opposite. Polygons are clipped
// by Sutherland and Hodgman's method; a circle is clipped as one, its marks standing for it.
#include <algorithm>

#include "geometry_flats.hpp"

namespace geometry {

static const double UNALIGNED = 1e-2;   // rad between a face and the closest points' normal
static const double SAME_ANGLE = 1e-13; // rad, difference that is none
static const double ON_SIDE = 1e-10;    // distance of a point from a side, over the smaller size, that is none
static const double CROSSING = 1e-2;    // sine between edges that cross
static const double LEVEL = 1e-2;       // rad between two faces that lie on each other
static const double PARALLEL = 0.0099998333341666645; // sine of 1e-2, between two lines that touch along a line

// Points of the part of the other body that is over a face.
struct Cut {
    int count = 0;
    Vec p[FOUND], across[FOUND]; // across: both edges that cross there, else zero
    int tag[FOUND], fixed[FOUND];
    int edge[FOUND]; // the edge that ends here: >= 0 of the other body, < 0 (-1 - side) of the face

    void add(const Vec &point, int name, int on, int along = 0, const Vec &both = {0, 0, 0}) {
        if (count < FOUND)
            p[count] = point, across[count] = both, tag[count] = name, fixed[count] = on, edge[count++] = along;
    }
};

int crossing_name(int a0, int a1, int count_a, int b0, int b1, int count_b, int which) {
    // (distinct as long as the numbers of vertices squared have a product below 2^29; else hardly ever equal)
    using Word = unsigned long long;
    const Word one = static_cast<Word>(std::min(a0, a1)) * static_cast<Word>(count_a) + std::max(a0, a1);
    const Word two = static_cast<Word>(std::min(b0, b1)) * static_cast<Word>(count_b) + std::max(b0, b1);
    const Word all = 2 * (one * static_cast<Word>(count_b) * static_cast<Word>(count_b) + two) + which;
    return 10000 + static_cast<int>(all % 1073741789ULL);
}

static bool is_round(const Flat &f) { return f.kind == RIM_POINTS; }

static Vec from_axis(const Flat &circle, const Vec &p) {
    const Vec away = p - circle.centre;
    return away - dot(away, circle.normal) * circle.normal;
}

// Outward normal of side i of the prism over a face.
static Vec side_normal(const Flat &face, int i) {
    if (face.dim == 2) return unit(face.p[i] - face.centre, {0, 0, 0});
    const Vec out = cross(face.p[(i + 1) % face.count] - face.p[i], face.normal);
    const Vec m = unit(out, {0, 0, 0});
    return dot(m, face.p[i] - face.centre) < 0 ? -m : m;
}

double margin(const Flat &face, const Vec &p) {
    if (is_round(face)) return face.radius - length(from_axis(face, p));
    double least = INFINITY;
    for (int i = 0; i < face.count; i++) least = std::min(least, -dot(side_normal(face, i), p - face.p[i]));
    return least;
}

bool holds(const Flat &face, const Vec &p, double slack) { return margin(face, p) >= -slack; }

// A name for the point where edge k of `other` passes side i of `own` (edges of a are first).
static int crossing_of(const Flat &own, int i, const Flat &other, int k) {
    const int o0 = own.id[i], o1 = own.id[(i + 1) % own.count];
    const int t0 = other.id[(k + other.count - 1) % other.count], t1 = other.id[k];
    if (own.owner == 1) return crossing_name(o0, o1, own.vertices, t0, t1, other.vertices, 0);
    return crossing_name(t0, t1, other.vertices, o0, o1, own.vertices, 0);
}

// The normal of two edges that cross, near that of a face; zero where they are nearly parallel.
static Vec across(const Vec &one, const Vec &two, const Vec &near) {
    const Vec m = cross(one, two);
    const double far = length(m);
    if (!(far > CROSSING * length(one) * length(two))) return {0, 0, 0};
    return (dot(m, near) < 0 ? -1 / far : 1 / far) * m;
}

static void clip(const Cut &in, const Flat &own, int i, const Flat &other, double slack, Cut &out) {
    const Vec m = side_normal(own, i);
    out.count = 0;
    double height[FOUND];
    for (int k = 0; k < in.count; k++) {
        const double h = dot(m, in.p[k] - own.p[i]);
        height[k] = std::fabs(h) <= slack ? 0.0 : h;
    }
    int after_cut = 0; // whether the last point was where the polygon leaves the prism
    for (int k = 0; k < in.count; k++) {
        const int last = k > 0 ? k - 1 : in.count - 1;
        const double here = height[last], there = height[k];
        if (here * there < 0) {
            const Vec p = in.p[last] + (here / (here - there)) * (in.p[k] - in.p[last]);
            int tag, fixed = 0;
            Vec both = {0, 0, 0};
            if (own.dim == 2) {
                name_of(own, i, tag, fixed);
            } else if (other.kind == LINE_ENDS) {
                tag = here > 0 ? in.tag[last] : in.tag[k];
            } else if (in.edge[k] >= 0) {
                tag = crossing_of(own, i, other, in.edge[k]);
                both = across(own.p[(i + 1) % own.count] - own.p[i], in.p[k] - in.p[last], own.normal);
            } else {
                const int j = -1 - in.edge[k];
                if ((j + 1) % own.count == i) name_of(own, i, tag, fixed);
                else if ((i + 1) % own.count == j) name_of(own, j, tag, fixed);
                else tag = crossing_name(own.id[i], own.id[j], own.vertices, 0, 0, 1, 1);
            }
            out.add(p, tag, fixed, here < 0 ? in.edge[k] : -1 - i, both);
            after_cut = here < 0;
        }
        if (there <= 0) {
            out.add(in.p[k], in.tag[k], in.fixed[k], after_cut && here > 0 ? -1 - i : in.edge[k], in.across[k]);
            after_cut = 0;
        }
    }
}

// The points of `other` that are over `own`, by their names.
static void held(const Flat &own, const Flat &other, double slack, const Flat *lift, Cut &out) {
    for (int k = 0; k < other.count; k++) {
        if (!holds(own, other.p[k], slack)) continue;
        int tag, fixed;
        name_of(other, k, tag, fixed);
        Vec p = other.p[k];
        // (moved along its own face's normal into the plane of the other)
        if (lift) p = p + (dot(lift->p[0] - p, lift->normal) / dot(other.normal, lift->normal)) * other.normal;
        out.add(p, tag, fixed);
    }
}

// Where the sides of a polygon, or a line, cross the cylinder over a circle.
static void crossings(const Flat &polygon, const Flat &circle, const Flat *lift, const Vec &along, Cut &out) {
    const bool line = polygon.count == 2;
    for (int which = 0; which < 2; which++) {
        for (int k = line ? 1 : 0; k < polygon.count; k++) {
            const int last = k > 0 ? k - 1 : polygon.count - 1;
            const Vec p = from_axis(circle, polygon.p[last]), d = from_axis(circle, polygon.p[k]) - p;
            const double a = dot(d, d), b = dot(p, d), c = dot(p, p) - circle.radius * circle.radius;
            const double root = b * b - a * c;
            if (!(root >= 0) || !(a > 0)) continue;
            const double t = (-b + (which ? 1 : -1) * std::sqrt(root)) / a;
            if (!(t >= 0 && t <= 1)) continue;
            Vec x = polygon.p[last] + t * (polygon.p[k] - polygon.p[last]);
            if (lift) x = x + (dot(lift->p[0] - x, lift->normal) / dot(along, lift->normal)) * along;
            const int tag = polygon.kind == LINE_ENDS
                                ? 5000 + polygon.id[which]
                                : crossing_name(polygon.id[last], polygon.id[k], polygon.vertices, 0, 0, 1, which);
            out.add(x, tag, 0);
        }
    }
}

static void two_circles(const Flat &own, const Flat &other, Cut &out) {
    const Vec between = from_axis(own, other.centre);
    const double far = length(between);
    if (!(far > 0) || far < std::fabs(own.radius - other.radius) || far > own.radius + other.radius) return;
    const double along = (far * far + own.radius * own.radius - other.radius * other.radius) / (2 * far);
    const double half = std::sqrt(std::max(own.radius * own.radius - along * along, 0.0));
    // (the sides are told apart whichever body comes first)
    const Vec u = (1 / far) * between, v = (own.owner == 1 ? 1.0 : -1.0) * cross(own.normal, u);
    for (int which = 0; which < 2; which++) {
        Vec x = own.centre + along * u + (which ? -half : half) * v;
        x = x + (dot(other.p[0] - x, other.normal) / dot(own.normal, other.normal)) * own.normal;
        out.add(x, 3000 + which, 0);
    }
}

static void opposite(const Flat &own, const Flat &other, double slack, Cut &out) {
    if (!is_round(own) && !is_round(other)) {
        Cut spare;
        Cut *now = &out, *next = &spare;
        for (int k = 0; k < other.count; k++) {
            int tag, fixed;
            name_of(other, k, tag, fixed);
            now->add(other.p[k], tag, fixed, k);
        }
        for (int i = 0; i < own.count && now->count > 0; i++) {
            clip(*now, own, i, other, slack, *next);
            std::swap(now, next);
        }
        if (now != &out) out = *now;
        return;
    }
    held(own, other, slack, nullptr, out);
    const bool level = other.count > 2 && length(own.normal + other.normal) < LEVEL;
    if (level) held(other, own, slack, &other, out);
    if (!is_round(other)) crossings(other, own, nullptr, own.normal, out);
    else if (level && is_round(own)) two_circles(own, other, out);
    else if (level) crossings(own, other, &other, own.normal, out);
}

bool face_points(const Flat &on_a, const Flat &on_b, double size, Points &out) {
    const Flat *own = nullptr, *other = nullptr;
    double best = UNALIGNED;
    for (int k = 0; k < 2; k++) {
        const Flat &one = k ? on_b : on_a, &two = k ? on_a : on_b;
        if (one.count < one.dim || two.count < 2) continue;
        const double angle = length(one.normal - one.n);
        // (of two that are as good: the one that is no circle, whichever body comes first)
        if (angle < best - SAME_ANGLE || (own && is_round(*own) && angle < best + SAME_ANGLE)) {
            best = angle, own = &one, other = &two;
        }
    }
    if (!own) return false;
    Cut cut;
    opposite(*own, *other, ON_SIDE * size, cut);
    const Vec m = own->normal;
    const double sign = own == &on_a ? 1.0 : -1.0;
    out.n = sign * m;
    out.count = 0;
    const double same = SAME * size;
    for (int k = 0; k < cut.count; k++) {
        bool seen = false;
        for (int i = 0; i < k && !seen; i++) {
            const Vec away = cut.p[k] - cut.p[i];
            seen = dot(away, away) <= same * same;
        }
        if (seen) continue;
        // (steeper edges are no part of a face that lies on another)
        const bool crossing = dot(cut.across[k], m) > 1 - UNALIGNED * UNALIGNED / 2;
        const Vec mine = crossing ? cut.across[k] : m;
        // (the point of a crossing is over the face's edge: the gap along the normal of both edges)
        const double above = dot(cut.p[k] - own->p[0], m), gap = crossing ? above * dot(m, mine) : above;
        const Vec foot = cut.p[k] - gap * mine;
        const int i = out.count++;
        out.a[i] = sign > 0 ? foot : cut.p[k], out.b[i] = sign > 0 ? cut.p[k] : foot;
        out.own[i] = sign * mine;
        out.gap[i] = gap, out.tag[i] = cut.tag[k], out.fixed[i] = cut.fixed[k];
    }
    return true;
}

bool line_points(const Body &a, const Body &b, const Flat &on_a, const Flat &on_b, const Vec &n, double size,
                 Points &out) {
    if (on_a.count != 2 || on_b.count != 2 || on_a.dim == 2) return false;
    const Vec whole = on_a.p[1] - on_a.p[0], other = on_b.p[1] - on_b.p[0];
    const double far = length(whole);
    if (!(far > 0)) return false;
    const Vec along = (1 / far) * whole;
    if (length(cross(along, other)) > PARALLEL * length(other)) return false;
    const double s0 = dot(on_b.p[0] - on_a.p[0], along), s1 = dot(on_b.p[1] - on_a.p[0], along);
    double ends[2] = {clamp(s0, 0, far), clamp(s1, 0, far)};
    if (std::fabs(ends[1] - ends[0]) <= SAME * size) return false;
    out.n = n;
    out.count = 2;
    for (int k = 0; k < 2; k++) {
        const Vec q = on_b.p[0] + ((ends[k] - s0) / (s1 - s0)) * other;
        Vec p = on_a.p[0] + ends[k] * along;
        double gap = dot(q - p, n);
        // Lines that miss each other by w: bodies with radii r_a and r_b across them are w^2 / (2 (r_a + r_b))
        // farther apart, between them; w^2 / (2 r_a) is what the one line is outside the other body.
        const Vec foot = q - gap * n;
        const double out_a = std::max(violation(*a.shape, a.own(foot)), 0.0);
        const double out_b = std::max(violation(*b.shape, b.own(p + gap * n)), 0.0);
        const double share = out_b / std::max(out_a + out_b, 1e-300);
        p = p + share * (foot - p) - (out_a * share * share) * n;
        gap += out_a * share;
        out.a[k] = p, out.b[k] = p + gap * n, out.own[k] = n, out.gap[k] = gap, out.fixed[k] = 0;
    }
    // (the ends are told apart along the first body's axis)
    out.tag[0] = s1 > s0 ? 5000 : 5001, out.tag[1] = s1 > s0 ? 5001 : 5000;
    return true;
}

} // namespace geometry
