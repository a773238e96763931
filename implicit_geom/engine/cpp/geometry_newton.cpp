// Newton's method on the closest-point equations of two features [C07, eq. 22].
//
// Unknowns: the core point p of the first body, the unit normal n and the distance D of the cores; the other
// core point is q = p + D n. Each body gives three equations: its point is on the feature, and n is in the
// feature's normal cone.
#include <algorithm>

#include "geometry_closest.hpp"

namespace geometry {

static const int STEPS = 14;

struct Rows {
    double g[3];
    Vec gy[3], gm[3]; // derivatives with respect to the point and to the outward normal
};

static double power(double t, double p) {
    if (p == 0) return 1;
    if (p == 2) return t * t;
    return t > 0 ? std::pow(t, p) : 0;
}

static bool smooth_rows(const Shape &s, const Vec &y, const Vec &m, double scale, Rows &out) {
    const Vec axes = semi_axes(s);
    const double p = s.kind == ELLIPSOID ? 2.0 : s.par[3];
    const double a[3] = {axes.x, axes.y, axes.z}, at[3] = {y.x, y.y, y.z};
    double t[3], most = 0, sum = 0;
    for (int i = 0; i < 3; i++) t[i] = std::fabs(at[i]) / a[i], most = std::max(most, t[i]);
    if (!(most > 0)) return false;
    for (double v : t) sum += power(v / most, p);
    const double N = most * (p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
    double low[3], g[3]; // second and first derivatives of N
    double across_n[3];
    for (int i = 0; i < 3; i++) {
        low[i] = power(t[i] / N, p - 2);
        g[i] = std::copysign(low[i] * t[i] / N / a[i], at[i]);
        across_n[i] = low[i] / (a[i] * a[i]);
    }
    const Vec grad = {g[0], g[1], g[2]};
    const double steep = length(grad);
    if (!(steep > 0)) return false;
    // f = (N - 1) / |grad N| at the start of the step: about a distance
    const double f = 1 / steep;
    Vec e[2];
    across(m, e[0], e[1]);
    out.g[0] = f * (N - 1), out.gy[0] = f * grad, out.gm[0] = {0, 0, 0};
    const double c = (p - 1) / N * f * scale;
    for (int k = 0; k < 2; k++) {
        const double along = dot(e[k], grad);
        out.g[k + 1] = scale * f * along;
        const Vec He = {across_n[0] * e[k].x, across_n[1] * e[k].y, across_n[2] * e[k].z};
        out.gy[k + 1] = c * (He - along * grad);
        out.gm[k + 1] = -scale * f * dot(m, grad) * e[k];
    }
    return true;
}

static bool rows_of(const Local &l, const Vec &y, const Vec &m, double scale, Rows &out) {
    const Vec zero = {0, 0, 0};
    switch (l.kind) {
    case POINT:
        out = {{y.x - l.point.x, y.y - l.point.y, y.z - l.point.z},
               {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
               {zero, zero, zero}};
        return true;
    case LINE: {
        Vec e, f;
        across(l.along, e, f);
        const Vec d = y - l.point;
        out = {{dot(e, d), dot(f, d), scale * dot(l.along, m)}, {e, f, zero}, {zero, zero, scale * l.along}};
        return true;
    }
    case CIRCLE: {
        const double rho = std::sqrt(y.x * y.x + y.y * y.y), f = scale / l.reach;
        if (!(rho > 0)) return false;
        out = {{y.z - l.height, rho - l.reach, f * (m.y * y.x - m.x * y.y)},
               {{0, 0, 1}, {y.x / rho, y.y / rho, 0}, {f * m.y, -f * m.x, 0}},
               {zero, zero, {-f * y.y, f * y.x, 0}}};
        return true;
    }
    case CONE_SIDE: {
        const double r = l.shape->par[0], h = l.shape->par[1], side = std::hypot(r, h), c = h / side, s = r / side;
        const double rho = std::sqrt(y.x * y.x + y.y * y.y);
        if (!(rho > 0)) return false;
        // (the turn about the axis by angles, not by arcs, which are short near the apex)
        const double f = scale / rho, twist = (m.y * y.x - m.x * y.y) / rho;
        out = {{c * rho + s * (y.z - h), scale * (m.z - s), scale * twist},
               {{c * y.x / rho, c * y.y / rho, s}, zero,
                {f * (m.y - twist * y.x / rho), f * (-m.x - twist * y.y / rho), 0}},
               {zero, {0, 0, scale}, {-f * y.y, f * y.x, 0}}};
        return true;
    }
    default: return smooth_rows(*l.shape, y, m, scale, out);
    }
}

// Solves M x = r (6 x 6) with complete pivoting; unknowns that nothing determines stay zero.
static bool solve(double M[6][7], double x[6]) {
    int column[6] = {0, 1, 2, 3, 4, 5}, rank = 0;
    double first = 0;
    for (; rank < 6; rank++) {
        int r = rank, c = rank;
        double most = 0;
        for (int i = rank; i < 6; i++) {
            for (int j = rank; j < 6; j++) {
                const double v = std::fabs(M[i][j]);
                if (v > most) most = v, r = i, c = j;
            }
        }
        if (rank == 0) first = most;
        if (!(most > 1e-13 * first)) break;
        if (r != rank) std::swap(M[r], M[rank]);
        if (c != rank) {
            for (int i = 0; i < 6; i++) std::swap(M[i][c], M[i][rank]);
            std::swap(column[c], column[rank]);
        }
        for (int i = rank + 1; i < 6; i++) {
            const double f = M[i][rank] / M[rank][rank];
            if (f == 0) continue;
            for (int j = rank + 1; j < 7; j++) M[i][j] -= f * M[rank][j];
        }
    }
    double y[6] = {0, 0, 0, 0, 0, 0};
    for (int i = rank - 1; i >= 0; i--) {
        double v = M[i][6];
        for (int j = i + 1; j < rank; j++) v -= M[i][j] * y[j];
        y[i] = v / M[i][i];
    }
    bool good = rank > 0;
    for (int i = 0; i < 6; i++) x[column[i]] = y[i], good = good && std::isfinite(y[i]);
    return good;
}

// Cores of points and lines: in closed form. n: kept where the cores touch in one point.
static bool straight(const Body &a, const Local &la, const Body &b, const Local &lb, double size, Vec &n, Vec &p,
                     Vec &q) {
    p = a.world(la.point), q = b.world(lb.point);
    const Vec u = a.R * la.along, w = b.R * lb.along, r = q - p;
    if (la.kind == LINE && lb.kind == LINE) {
        const Vec m = cross(u, w);
        const double mm = dot(m, m), uw = dot(u, w);
        if (mm > 1e-24) {
            const double s = dot(cross(r, w), m) / mm, t = dot(cross(r, u), m) / mm;
            p = p + s * u, q = q + t * w;
            const Vec e = unit(m, n), away = q - p;
            const double side = dot(e, away);
            // apart by more than rounding the points say which side is which, else the start does
            const double sign = la.radius + lb.radius > 0 || std::fabs(side) > 0.1 * size ? side : dot(e, n);
            n = (sign < 0 ? -1.0 : 1.0) * e;
            return true;
        }
        // parallel: in the middle of what they share
        const double s0 = dot(r, u), s1 = s0 + uw * lb.reach;
        const double low = std::max(0.0, std::min(s0, s1)), high = std::min(la.reach, std::max(s0, s1));
        const double s = clamp((low + high) / 2, 0, la.reach);
        p = p + s * u;
        q = q + clamp(dot(p - q, w), 0, lb.reach) * w;
    } else if (la.kind == LINE) {
        p = p + dot(r, u) * u;
    } else if (lb.kind == LINE) {
        q = q - dot(r, w) * w;
    }
    const Vec away = q - p;
    if (dot(away, away) > 1e-22 * size * size) n = unit(away, n);
    // (near cores leave their difference few digits: across a line it is known better)
    if (la.kind == LINE) n = unit(n - dot(n, u) * u, n);
    if (lb.kind == LINE) n = unit(n - dot(n, w) * w, n);
    return true;
}

double proof_slack(const Body &a, const Body &b, double size) {
    return 1e-13 * size + 4.4e-16 * (a.shape->size + b.shape->size + length(b.centre() - a.centre()));
}

static bool iterate(const Body &a, const Local &la, const Body &b, const Local &lb, double size, Vec &n, Vec &p,
                    Vec &q) {
    double D = dot(n, q - p);
    for (int step = 0; step < STEPS; step++) {
        Rows one, two;
        if (!rows_of(la, a.own(p), a.R.back(n), size, one)) return false;
        if (!rows_of(lb, b.own(q), -b.R.back(n), size, two)) return false;
        Vec e, f;
        across(n, e, f);
        const Vec miss = q - p - D * n;
        double M[6][7], x[6];
        const double turn = 1 / size;
        for (int k = 0; k < 3; k++) {
            const Vec y = a.R * one.gy[k], m = turn * (a.R * one.gm[k]);
            double *row = M[k];
            row[0] = y.x, row[1] = y.y, row[2] = y.z, row[3] = dot(m, e), row[4] = dot(m, f), row[5] = 0;
            row[6] = -one.g[k];
            const Vec z = b.R * two.gy[k], l = turn * (D * z - b.R * two.gm[k]);
            row = M[k + 3];
            row[0] = z.x, row[1] = z.y, row[2] = z.z, row[3] = dot(l, e), row[4] = dot(l, f), row[5] = dot(z, n);
            row[6] = -two.g[k] + dot(z, miss);
        }
        if (!solve(M, x)) return false;
        const double angle = std::hypot(x[3], x[4]) / size, move = length({x[0], x[1], x[2]});
        // (a long step is cut: the equations are curved)
        const double most = std::max(angle / 0.7, move / (4 * size + 0.5 * (a.shape->size)));
        const double part = most > 1 ? 1 / most : 1;
        p = p + part * Vec{x[0], x[1], x[2]};
        n = unit(n + part * turn * (x[3] * e + x[4] * f), n);
        D += part * x[5];
        q = p + D * n;
        if (!std::isfinite(D + p.x + p.y + p.z)) return false;
        if (step > 0 && angle < 1e-9 && move < 1e-9 * size && std::fabs(x[5]) < 1e-9 * size) {
            if (angle < 1e-14 && move < 1e-14 * size) return true;
            if (step > 2 && angle < 1e-12 && move < 1e-11 * size) return true;
        }
    }
    return true; // (the proof decides)
}

// Whether a core point is within its feature's ends, by the shape itself.
static bool within(const Local &l, const Vec &y, double slack) {
    switch (l.kind) {
    case LINE: {
        const double s = dot(y - l.point, l.along);
        return s >= -slack && s <= l.reach + slack;
    }
    case CONE_SIDE: return y.z >= -slack && y.z <= l.shape->par[1] + slack;
    default: return true;
    }
}

// Radius of a ball inside the shape that touches its surface at y, where it is round; 0 on edges.
static double ball_at(const Local &l, const Vec &y) {
    const Shape &s = *l.shape;
    if (l.kind == LINE && s.kind == CYLINDER) return std::max(std::min(s.par[0], s.par[1] / 2 - std::fabs(y.z)), 0.0);
    if (l.kind == CONE_SIDE) {
        const double r = s.par[0], h = s.par[1], side = std::hypot(r, h);
        const double to_axis = std::sqrt(y.x * y.x + y.y * y.y) * side / h;
        return std::max(std::min(to_axis, y.z / (1 + r / side)), 0.0);
    }
    return rolling_radius(s);
}

bool closest_of(const Body &a, const Local &la, const Body &b, const Local &lb, const Vec &start, const Vec &p0,
                const Vec &q0, double size, Closest &out) {
    Vec n = start, p = p0, q = q0;
    if (la.kind <= LINE && lb.kind <= LINE) {
        if (!straight(a, la, b, lb, size, n, p, q)) return false;
    } else {
        // cores: a line's or a corner's point is on it, whatever the start
        if (la.kind == POINT) p = a.world(la.point);
        else p = p - la.radius * n;
        if (lb.kind == POINT) q = b.world(lb.point);
        else q = q + lb.radius * n;
        if (!iterate(a, la, b, lb, size, n, p, q)) return false;
    }
    const double slack = proof_slack(a, b, size), core = dot(n, q - p);
    const double d = core - la.radius - lb.radius;
    if (!std::isfinite(d) || std::fabs(separation(a, b, n) - d) > slack) return false;
    const double loose = 20 * slack;
    if (!within(la, a.own(p), loose) || !within(lb, b.own(q), loose)) return false;
    const Vec on_a = p + la.radius * n, on_b = q - lb.radius * n;
    if (outside(*a.shape, a.own(on_a)) > loose || outside(*b.shape, b.own(on_b)) > loose) return false;
    // (what the points miss each other by across the normal)
    if (length(q - p - core * n) > 1e-11 * size + 1e-3 * std::fabs(d) * 1e-9 + 100 * slack) return false;
    out.gap = d, out.n = n, out.a = on_a, out.b = on_a + d * n, out.tag = out.fixed = 0;
    // (no other direction keeps a body farther apart that has a ball inside, touching here, of a radius above the
    // overlap: B - A has one of both radii)
    out.sole = d > -0.999 * (ball_at(la, a.own(on_a)) + ball_at(lb, b.own(on_b)));
    if (lb.kind == POINT && lb.from >= 0) out.tag = 1000 + lb.from, out.fixed = 2;
    else if (la.kind == POINT && la.from >= 0) out.tag = 2000 + la.from, out.fixed = 1;
    else if (la.to >= 0 && lb.to >= 0) {
        out.tag = crossing_name(la.from, la.to, vertex_count(*a.shape), lb.from, lb.to, vertex_count(*b.shape), 0);
    }
    return true;
}

bool closest_near(const Body &a, const Body &b, const Vec &n, const Vec &p, const Vec &q, double size,
                  Closest &out) {
    Local on_a[FEATURES], on_b[FEATURES];
    const int many_a = features_at(*a.shape, a.own(p), a.R.back(n), on_a);
    const int many_b = features_at(*b.shape, b.own(q), -b.R.back(n), on_b);
    bool any = false;
    Closest one;
    for (int rank = 0; rank < many_a + many_b - 1; rank++) {
        for (int i = 0; i <= rank && i < many_a; i++) {
            if (rank - i >= many_b) continue;
            if (!closest_of(a, on_a[i], b, on_b[rank - i], n, p, q, size, one)) continue;
            if (!any || one.gap > out.gap) out = one, any = true;
            // (bodies that overlap may have other features that they have to be moved farther apart by)
            if (one.sole || one.gap > -TOUCHING * size) return true;
        }
    }
    return any;
}

} // namespace geometry
