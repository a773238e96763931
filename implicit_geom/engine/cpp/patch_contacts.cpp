#include "patch_contacts.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>

namespace engine {

namespace {
constexpr double SAME_NORMAL = 1e-9; // rad
}

std::vector<PatchContact> patch_contacts(const std::vector<TouchingPoint> &points, const std::vector<char> &split) {
    std::vector<PatchContact> out;
    for (std::size_t k = 0; k < points.size(); ++k) {
        const TouchingPoint &p = points[k];
        bool joins = false;
        if (!out.empty() && !split[p.pair]) {
            const PatchContact &last = out.back();
            const TouchingPoint &first = points[std::size_t(last.first_point)];
            double apart[3];
            la::subtract(first.n, p.n, apart);
            joins = first.pair == p.pair && la::length(apart) <= SAME_NORMAL && last.points < contact::NORMALS;
        }
        if (!joins) out.push_back({int(k), 0, {0, 0, 0}, Rows()});
        ++out.back().points;
    }
    for (PatchContact &c : out)
        for (int i = 0; i < c.points; ++i)
            for (int j = 0; j < 3; ++j) c.at[j] += points[std::size_t(c.first_point + i)].point[j] / c.points;
    return out;
}

void contact_rows(const Scene &scene, const State &s, const TouchingPoint *points, int count, const double *at,
                  const std::vector<int> &index, bool finds_place, contact::Contact &c, Rows &rows) {
    const TouchingPoint &p = points[0];
    const Law &law = scene.laws[scene.pairs[p.pair].law];
    c.mu = law.mu, c.normals = c.rows = count, c.turned = false;
    c.body[0] = index[p.first], c.body[1] = index[p.second];
    rows.count = 0;
    const int most = scene.dim == 2 ? 1 : 3;
    if (law.mu > 0)
        for (int i = 0; i < most; ++i)
            if (law.e[i] > 0) rows.component[rows.count] = i, rows.scale[rows.count] = law.e[i], ++rows.count, ++c.rows;
    const double *axes[2] = {p.t, p.o};
    for (int side = 0; side < 2; ++side) {
        const double sign = side ? 1 : -1;
        for (int r = 0; r < c.rows; ++r) {
            double *J = c.J[side][r];
            const int which = r < count ? -1 : rows.component[r - count];
            const double scale = r < count ? sign : sign * rows.scale[r - count];
            double arm[3], moment[3];
            if (which == 2) {
                for (int i = 0; i < 3; ++i) J[i] = 0, J[3 + i] = scale * p.n[i];
                continue;
            }
            const double *axis = r < count ? points[r].n : axes[which];
            la::subtract(r < count ? points[r].point : at, s.body[side ? p.second : p.first].x, arm);
            la::cross(arm, axis, moment);
            if (scene.dim == 2) {
                J[0] = scale * axis[0], J[1] = scale * axis[1], J[2] = scale * moment[2];
            } else {
                for (int i = 0; i < 3; ++i) J[i] = scale * axis[i], J[3 + i] = scale * moment[i];
            }
        }
    }
    c.turns = finds_place && count > 1 && scene.dim == 3 && rows.count > 0 && rows.component[0] < 2;
    if (c.turns) {
        for (int i = 0; i < count; ++i) {
            double r[3];
            la::subtract(points[i].point, at, r);
            const double lever[3] = {-la::dot(r, p.o), la::dot(r, p.t), 0.0};
            for (int f = 0; f < rows.count; ++f) c.lever[i][f] = rows.scale[f] * lever[rows.component[f]];
        }
        for (int side = 0; side < 2; ++side)
            for (int i = 0; i < 3; ++i) c.J[side][c.rows][i] = 0, c.J[side][c.rows][3 + i] = (side ? 1 : -1) * p.n[i];
        ++c.rows;
    }
    la::zero(c.w, c.rows);
}

void at_pivot(const State &s, const std::vector<TouchingPoint> &points, PatchContact &c) {
    if (c.points == 1) return;
    const TouchingPoint &first = points[std::size_t(c.first_point)];
    double u[4], slip[3], r[3], extent = 0;
    relative_velocity(s, first, c.at, u);
    if (u[3] == 0) return;
    for (int i = 0; i < 3; ++i) slip[i] = u[1] * first.t[i] + u[2] * first.o[i];
    la::cross(first.n, slip, r);
    for (double &x : r) x /= u[3];
    double far[3] = {0, 0, 0};
    for (int i = 0; i < c.points; ++i) {
        double away[3];
        la::subtract(points[std::size_t(c.first_point + i)].point, c.at, away);
        if (la::length(away) > extent) extent = la::length(away), la::copy(away, far);
    }
    if (c.points == 2 && extent > 0) { // along a line
        const double along = la::dot(r, far) / (extent * extent);
        for (int i = 0; i < 3; ++i) r[i] = along * far[i];
    }
    if (la::length(r) > extent) return;
    for (int i = 0; i < 3; ++i) c.at[i] += r[i];
}

double balance(const std::vector<TouchingPoint> &points, PatchContact &c, const double *p) {
    double sum = 0, at[3] = {0, 0, 0}, away[3];
    for (int i = 0; i < c.points; ++i) sum += p[i];
    if (c.points == 1 || sum == 0) return 0;
    // (from the first point: a mean of large numbers would lose digits)
    const double *base = points[std::size_t(c.first_point)].point;
    for (int i = 0; i < c.points; ++i) {
        la::subtract(points[std::size_t(c.first_point + i)].point, base, away);
        for (int j = 0; j < 3; ++j) at[j] += p[i] / sum * away[j];
    }
    for (int j = 0; j < 3; ++j) at[j] += base[j];
    la::subtract(at, c.at, away);
    la::copy(at, c.at);
    return la::length(away);
}

} // namespace engine
