#include "touching_points.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>

namespace engine {

namespace {

void place(const State &s, const Piece &piece, geometry::Placed &out) {
    const BodyState &b = s.body[piece.body];
    out.shape = &piece.shape;
    la::times(b.R, piece.x, out.x);
    for (int i = 0; i < 3; ++i) out.x[i] += b.x[i];
    la::product(b.R, piece.R, out.R);
}

void point_velocity(const BodyState &b, const double *point, double *out) {
    double r[3];
    la::subtract(point, b.x, r);
    la::cross(b.w, r, out);
    for (int i = 0; i < 3; ++i) out[i] += b.v[i];
}

constexpr double ACROSS = 1e-9; // of a direction's length, that must be across the normal

// t along the friction's direction, or along the world axis most across n.
bool tangent(const Scene &scene, const State &s, const Law &law, const double *n, double *t) {
    if (scene.dim == 2) {
        t[0] = n[1], t[1] = -n[0], t[2] = 0;
        return true;
    }
    double along[3] = {0, 0, 0};
    if (law.directed) {
        if (law.frame >= 0) la::times(s.body[law.frame].R, law.direction, along);
        else la::copy(law.direction, along);
    } else {
        int least = 0;
        for (int i = 1; i < 3; ++i)
            if (std::fabs(n[i]) < std::fabs(n[least])) least = i;
        along[least] = 1;
    }
    const double part = la::dot(along, n);
    for (int i = 0; i < 3; ++i) t[i] = along[i] - part * n[i];
    const double length = la::length(t), whole = la::length(along);
    for (int i = 0; i < 3; ++i) t[i] /= std::max(length, 1e-300);
    return length > ACROSS * whole;
}

} // namespace

bool touching_points(const Scene &scene, const State &s, int number, const double *pulled,
                     std::vector<TouchingPoint> &out) {
    const Pair &pair = scene.pairs[number];
    geometry::Placed a, b;
    place(s, scene.pieces[pair.piece[0]], a), place(s, scene.pieces[pair.piece[1]], b);
    geometry::Patch patch;
    if (geometry::patch(a, b, patch) != 0)
        if (!scene.foreign || scene.foreign(number, a.x, a.R, b.x, b.R, &patch) != 0) return false;
    const BodyState &one = s.body[pair.body[0]], &two = s.body[pair.body[1]];
    double fastest = 0;
    const std::size_t before = out.size();
    for (int k = 0; k < patch.count; ++k) {
        TouchingPoint p;
        p.pair = number, p.tag = patch.tag[k], p.fixed = patch.fixed[k], p.gap = patch.gap[k], p.size = pair.size;
        double u[3], v[3];
        point_velocity(two, patch.b[k], u), point_velocity(one, patch.b[k], v);
        la::subtract(u, v, u);
        fastest = std::max(fastest, la::length(u));
        p.velocity = la::dot(u, patch.own[k]);
        // both bodies feel an impulse at the pair's second point, so that angular momentum is kept
        la::copy(patch.b[k], p.point), la::copy(patch.a[k], p.other);
        double t[3], o[3];
        const Law &law = scene.laws[pair.law];
        p.undirected = !tangent(scene, s, law, patch.own[k], t) && law.mu > 0;
        la::cross(patch.own[k], t, o);
        const double sign = pair.swapped ? -1 : 1;
        p.first = pair.body[pair.swapped], p.second = pair.body[1 - pair.swapped];
        for (int i = 0; i < 3; ++i) p.n[i] = sign * patch.own[k][i], p.t[i] = t[i], p.o[i] = scene.dim == 3 ? sign * o[i] : 0;
        out.push_back(p);
    }
    const double added = pulled[pair.body[0]] + pulled[pair.body[1]];
    const double speed =
        fastest + pair.size * (la::length(one.w) + la::length(two.w)) + added;
    for (std::size_t k = before; k < out.size(); ++k) {
        const double solved = SOLVED * (la::length(one.v) + la::length(two.v));
        out[k].strike = std::max({IMPACT_SPEED * speed, solved, SLOWEST * added});
    }
    return true;
}

void relative_velocity(const State &s, const TouchingPoint &p, const double *at, double u[4]) {
    double one[3], two[3];
    point_velocity(s.body[p.first], at, one), point_velocity(s.body[p.second], at, two);
    la::subtract(two, one, two);
    u[0] = la::dot(p.n, two), u[1] = la::dot(p.t, two), u[2] = la::dot(p.o, two);
    la::subtract(s.body[p.second].w, s.body[p.first].w, one);
    u[3] = la::dot(p.n, one);
}

void friction_in_world(const TouchingPoint &p, const Rows &rows, const double *own, double world[4]) {
    la::zero(world, 4);
    for (int r = 0; r < rows.count; ++r) {
        const double size = rows.scale[r] * own[r];
        if (rows.component[r] == 2) world[3] = size;
        else
            for (int i = 0; i < 3; ++i) world[i] += size * (rows.component[r] == 0 ? p.t : p.o)[i];
    }
}

void friction_of_rows(const TouchingPoint &p, const Rows &rows, const double world[4], double *own) {
    for (int r = 0; r < rows.count; ++r) {
        const double size = rows.component[r] == 2 ? world[3] : la::dot(rows.component[r] == 0 ? p.t : p.o, world);
        own[r] = size / rows.scale[r];
    }
}

} // namespace engine
