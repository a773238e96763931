// A flight: one step of RATTLE in which no contact closes [C07's geometry and friction in two stages].
//
//   stage 1   M (nu_half - nu) = h/2 F(q) + W(q) p_a,   q+ = q (+) h nu_half
//             0 <= p_a,n _|_ d(q+) >= 0,   friction of p_a against the slip of the stage, or of the start
//   stage 2   M (nu+ - nu_half) = h/2 F(q+) + W(q+) p_b
//             0 <= p_b,n _|_ W_n(q+)^T nu+ >= 0,   friction of p_b against W_t(q+)^T nu+
//
// Stage 1 by rounds: each is a contact problem about the end of the step that the last one found, where gaps and slip
// have the derivatives of motions that end there,
//   u_n = d(q+) / h + W_n(q+)^T T (nu - nu_k),   u_t = slip_k + W_t^T (nu - nu_k),
// T = dexp(h w) and slip_k the mean of those with W_t(q) and W_t(q+).
//
// In a composition of order four modes are known after the first of its parts, and held in the others.
#include "anderson.hpp"
#include "island.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>

namespace engine {

namespace {

constexpr int ROUNDS = 120;
constexpr int DEPTH = 6;         // of the acceleration of rounds
constexpr std::size_t PATIENCE = 30; // rounds without progress
constexpr double CLOSE = 3e-13;  // change of the velocities in a round, over the speeds at hand, that ends them
constexpr double EXACT = 1e-14;  // the same where nothing touches
constexpr double ENOUGH = 1e-10; // where rounding allows no less
constexpr double SHIFT = 1e-12;  // of the point at which friction acts, in a round, over the body's size
constexpr double FAST = 0.1;     // change over that of the round before, below which rounds need no acceleration
constexpr int STAGE_ROUNDS = 60; // of stage 2, for that point
constexpr double LAG = 2.0;      // slip at the start, over what friction could undo, from which friction lags
constexpr double SLIDES = 1e-8;   // slip, over the speeds at hand, above which a contact slides
constexpr double MAX_TURN = 1.5; // rad
constexpr double NEAR = 0.3;      // of the smaller body's size: how far a feature may go as its name changes
constexpr double SHORT = 1e-4;   // of a step: gaps follow from velocities

// a tangent turned with the normal from n to `to`, by the shortest rotation
void turned(const double *axis, const double *n, const double *to, double *out) {
    double x[3], y[3], z[3];
    la::cross(n, to, x), la::cross(x, axis, y), la::cross(x, y, z);
    const double c = std::max(1 + la::dot(n, to), 1e-12);
    for (int i = 0; i < 3; ++i) out[i] = axis[i] + y[i] + z[i] / c;
}

const TouchingPoint *same(const std::vector<TouchingPoint> &points, const TouchingPoint &p) {
    for (const TouchingPoint &q : points)
        if (q.pair == p.pair && q.tag == p.tag) return &q;
    return nullptr;
}

void make_unit(double *along, int rows) {
    double sum = 0;
    for (int r = 0; r < rows; ++r) sum += along[r] * along[r];
    sum = std::sqrt(sum);
    for (int r = 0; r < rows; ++r) along[r] = sum > 0 ? along[r] / sum : 0.0;
}

// g = D(h w)^T J_W w, the angular momentum that turning by h w carries, and A = dg / dw.
void angular_momentum(const Scene &scene, const BodyState &s, int body, const double *w, double h, double *A, double *g) {
    double J[9], L[3], T[9], S[9], TT[9], TS[9], TJ[9], TTJ[9], one[3], two[3];
    const double theta[3] = {h * w[0], h * w[1], h * w[2]}, square = la::dot(theta, theta);
    world_inertia(scene, s, body, J);
    la::times(J, w, L);
    const auto skew = [](const double *a, double *out) {
        const double k[9] = {0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0};
        la::copy(k, out, 9);
    };
    double D[9];
    tangent_inverse(theta, D);
    la::transposed_times(D, L, g);
    const double c = square < 0.25 ? 1. / 12 + square * (1. / 720 + square / 30240)
                                   : (1 - std::sqrt(square) / 2 / std::tan(std::sqrt(square) / 2)) / square;
    const double slope = 1. / 720 + square / 15120;
    skew(theta, T), skew(L, S);
    la::product(T, T, TT), la::product(T, S, TS), la::product(T, J, TJ), la::product(TT, J, TTJ);
    la::cross(theta, L, one), la::cross(theta, one, two);
    double O[9];
    skew(one, O);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const int k = 3 * i + j;
            A[k] = J[k] - h / 2 * S[k] + TJ[k] / 2 + c * (-h * O[k] - h * TS[k] + TTJ[k]) + two[i] * 2 * slope * h * theta[j];
        }
}

// Adds the angular momentum at the start, and what loads make of it in half a step.
void add_momentum(const Scene &scene, const BodyState &s, int body, double h, double *out) {
    double J[9], L[3];
    world_inertia(scene, s, body, J);
    la::times(J, s.w, L);
    for (int i = 0; i < 3; ++i) out[i] += L[i] + h / 2 * scene.load[6 * std::size_t(body) + 3 + std::size_t(i)];
}

// Whether an impulse is one that the law allows in that mode; impulses of a step backwards have the other sign.
bool held_in(const double *p, double h, const contact::Contact &c, bool slides) {
    const double sense = h < 0 ? -1 : 1;
    double friction = 0, sum = 0;
    for (int r = 0; r < c.normals; ++r) {
        if (!(sense * p[r] >= 0)) return false;
        sum += std::fabs(p[r]);
    }
    for (int r = c.normals; r < c.rows; ++r) friction += p[r] * p[r];
    return slides || std::sqrt(friction) <= c.mu * sum * (1 + 1e-12);
}

// Speed of the second body's slip on the first at a place of a contact.
double slips(const State &s, const TouchingPoint &p, const double *at) {
    double u[4];
    relative_velocity(s, p, at, u);
    return std::hypot(u[1], u[2]);
}

// The least slip of the rows of friction, at its place and all over the patch: slip is linear along a line.
double least_slip(const State &s, const std::vector<TouchingPoint> &points, const PatchContact &c) {
    const TouchingPoint &first = points[std::size_t(c.first_point)];
    double u[contact::NORMALS][contact::FRICTION], least = INFINITY;
    const auto slip_at = [&](const double *at, double *out) {
        double seen[4], sum = 0;
        relative_velocity(s, first, at, seen);
        for (int r = 0; r < c.rows.count; ++r) out[r] = c.rows.scale[r] * seen[1 + c.rows.component[r]], sum += out[r] * out[r];
        return std::sqrt(sum);
    };
    for (int i = 0; i < c.points; ++i) {
        least = std::min(least, slip_at(points[std::size_t(c.first_point + i)].point, u[i]));
        for (int j = 0; j < i; ++j) {
            double d[contact::FRICTION], along = 0, far = 0, sum = 0;
            for (int r = 0; r < c.rows.count; ++r) d[r] = u[j][r] - u[i][r], along -= d[r] * u[i][r], far += d[r] * d[r];
            const double t = far > 0 ? std::min(std::max(along / far, 0.0), 1.0) : 0.0;
            for (int r = 0; r < c.rows.count; ++r) sum += std::pow(u[i][r] + t * d[r], 2);
            least = std::min(least, std::sqrt(sum));
        }
    }
    double own[contact::FRICTION];
    return std::min(least, slip_at(c.at, own));
}

// Whether a contact was open, or approached, at the start.
bool struck(const std::vector<TouchingPoint> &points, const PatchContact &c) {
    const auto first = points.begin() + c.first_point;
    return !std::all_of(first, first + c.points, [](const TouchingPoint &p) { return p.resting(); });
}

// Velocities of a contact's rows, without w.
void seen(const contact::Contact &c, const TouchingPoint &p, const double *nu, int dim, double *out) {
    const int dof = dim == 2 ? 3 : 6;
    for (int r = 0; r < c.rows; ++r) {
        out[r] = 0;
        for (int side = 0; side < 2; ++side) {
            const double *v = nu + 6 * std::size_t(side ? p.second : p.first), *row = c.seen(side, r);
            for (int i = 0; i < dim; ++i) out[r] += row[i] * v[i];
            for (int i = dim; i < dof; ++i) out[r] += row[i] * v[dim == 2 ? 5 : i];
        }
    }
}

// Friction along a known slip as part of what the normal row pushes with.
void fold(contact::Contact &c, const double *slip) {
    double along[contact::FRICTION];
    const int count = c.end() - 1;
    la::copy(slip, along, count), make_unit(along, count);
    for (int side = 0; side < 2; ++side)
        for (int r = 0; r < count; ++r)
            for (int i = 0; i < contact::DOF; ++i) c.J[side][0][i] -= c.mu * along[r] * c.J[side][1 + r][i];
    c.rows = 1;
}

// row T of the angular part of a row at the end of a motion that turns by theta: T = dexp(theta).
void at_motion(const double *theta, double *row) {
    const double square = la::dot(theta, theta), angle = std::sqrt(square);
    const double b = angle > 1e-4 ? (1 - std::cos(angle)) / square : 0.5 - square / 24;
    const double c = angle > 1e-4 ? (angle - std::sin(angle)) / (square * angle) : 1. / 6 - square / 120;
    double one[3], two[3]; // T^T row = row - b theta x row + c theta x (theta x row)
    la::cross(theta, row, one), la::cross(theta, one, two);
    for (int i = 0; i < 3; ++i) row[i] += -b * one[i] + c * two[i];
}

} // namespace

// Where a point of the start is at the end: its gap, place and normal. A feature that is gone is followed to what
// took its place near by, or else to the point of the body, over the plane there.
bool Island::successor(const State &end, const TouchingPoint &p, const double *material, const Points &start,
                       const Points &there, TouchingPoint &out) const {
    if (const TouchingPoint *found = same(there, p)) {
        out = *found;
        return true;
    }
    if (there.empty()) return false;
    const Pair &pair = scene.pairs[p.pair];
    const BodyState &own = end.body[pair.body[p.fixed == 1 ? 0 : 1]];
    double r[3], away[3], nearest = NEAR * p.size;
    la::times(own.R, material, r);
    for (int i = 0; i < 3; ++i) r[i] += own.x[i];
    const TouchingPoint *low = &there[0], *found = nullptr;
    for (const TouchingPoint &q : there) {
        if (q.gap < low->gap) low = &q;
        la::subtract(p.fixed == 1 ? q.other : q.point, r, away);
        if (la::length(away) < nearest && !same(start, q)) nearest = la::length(away), found = &q;
    }
    out = found ? *found : *low;
    if (found) return true;
    const double sign = pair.swapped ? -1 : 1;
    if (p.fixed == 1) la::subtract(low->point, r, away);
    else la::subtract(r, low->other, away);
    out.gap = sign * la::dot(away, low->n);
    la::copy(r, out.point);
    return true;
}

// With one friction a patch, as C07's one contact, of a body that touches no other that moves; where that does not
// settle, each point has friction of its own.
bool Island::flight(const State &s, double h, const Points &start, const Points &old, const std::vector<char> *slides,
                    Solve &out, Points &end_points) {
    split = pairs_in_company(old);
    for (const TouchingPoint &p : old)
        if (!p.resting()) split[p.pair] = 1; // (as in an impact)
    if (flight_so(s, h, start, old, slides, out, end_points)) return true;
    if (slides || patch_contacts(old, split).size() == old.size()) return false;
    split.assign(scene.pairs.size(), 1);
    return flight_so(s, h, start, old, slides, out, end_points);
}

// Of each pair, whether its bodies' contacts connect several bodies that move.
std::vector<char> Island::pairs_in_company(const Points &points) const {
    std::vector<char> out(scene.pairs.size(), 0);
    if (members.size() == 1) return out;
    std::vector<std::array<int, 2>> joined;
    for (const TouchingPoint &p : points) joined.push_back({p.first, p.second});
    const std::vector<int> label = connected(joined);
    std::vector<int> bodies(scene.bodies, 0);
    for (int b : members) ++bodies[label[b]];
    for (const TouchingPoint &p : points)
        for (int b : {p.first, p.second})
            if (mask[b] && bodies[label[b]] > 1) out[p.pair] = 1;
    return out;
}

bool Island::flight_so(const State &s, double h, const Points &start, const Points &old, const std::vector<char> *slides,
                       Solve &out, Points &end_points) {
    ++flights;
    const int dim = scene.dim, n = int(members.size()), count = int(old.size());
    for (int b : members)
        if (std::fabs(h) * la::length(s.body[b].w) > MAX_TURN) return false;
    const bool brief = std::fabs(h) < SHORT * step;
    const double speed = speed_of(s, h);
    double reach = 0; // of the numbers that gaps come from, m
    for (int b : members) reach = std::max(reach, la::length(s.body[b].x) + scene.size[b]);
    contact::Problem q;
    masses(s, q);
    std::vector<PatchContact> contacts = patch_contacts(old, split);
    const std::size_t m = contacts.size();
    q.contacts.resize(m);
    for (PatchContact &c : contacts) { // (how many rows of friction)
        contact::Contact spare;
        contact_rows(scene, s, &old[std::size_t(c.first_point)], c.points, c.at, index, false, spare, c.rows);
    }
    contact::Solution found;
    for (PatchContact &c : contacts) at_pivot(s, old, c);
    warm_start(old, contacts, h / 2, found);
    std::vector<double> material(3 * std::size_t(count));
    for (int k = 0; k < count; ++k) {
        const BodyState &own = s.body[scene.pairs[old[k].pair].body[old[k].fixed == 1 ? 0 : 1]];
        double r[3];
        la::subtract(old[k].fixed == 1 ? old[k].other : old[k].point, own.x, r);
        la::transposed_times(own.R, r, &material[3 * std::size_t(k)]);
    }
    std::vector<double> nu(6 * std::size_t(scene.bodies), 0.0), kick(6 * std::size_t(scene.bodies), 0.0);
    for (int b = 0; b < scene.bodies; ++b)
        for (int i = 0; i < 3; ++i) nu[6 * b + i] = s.body[b].v[i], nu[6 * b + 3 + i] = s.body[b].w[i];
    const std::vector<double> nu_start = nu;
    load_velocities(s, h / 2, kick.data());
    std::vector<char> lag(m, 0);
    std::vector<double> start_spin(m), start_slip(contact::FRICTION * m), mean(contact::FRICTION * m), gap(count), end_at(3 * m);
    Points successors{std::size_t(count)};
    const auto set_rows = [&](std::size_t k) {
        PatchContact &c = contacts[k];
        contact_rows(scene, s, &old[std::size_t(c.first_point)], c.points, c.at, index, !slides, q.contacts[k], c.rows);
        double u[contact::ROWS];
        seen(q.contacts[k], old[std::size_t(c.first_point)], nu_start.data(), dim, u);
        for (int r = 0; r < c.rows.count; ++r) start_slip[contact::FRICTION * k + r] = u[c.points + r];
        if (q.contacts[k].turns) start_spin[k] = u[q.contacts[k].end()];
    };
    for (std::size_t k = 0; k < m; ++k) {
        set_rows(k);
        const Pair &pair = scene.pairs[old[std::size_t(contacts[k].first_point)].pair];
        // where the point of friction is not known yet, it must slide wherever it is
        const double slip = least_slip(s, old, contacts[k]);
        const double pushed = std::max(pulled[pair.body[0]], pulled[pair.body[1]]) * std::fabs(h) / step / 2;
        lag[k] = slides ? (*slides)[k] : !struck(old, contacts[k]) && !brief && slip > LAG * q.contacts[k].mu * pushed && slip > 1e-9 * speed;
    }
    // (of contacts at one point that lag, friction is known but for its size)
    const auto folds = [&](std::size_t k) { return lag[k] && !slides && !brief && contacts[k].points == 1; };
    out = Solve();
    out.form = RATTLE_STEP, out.h = h, out.start = s, out.bodies = mask;
    State &end = out.end;
    double least = INFINITY, error = INFINITY, moved = 0, law_error = INFINITY, last_error = INFINITY;
    const double close = m > FEW ? CROWDED : count ? CLOSE : EXACT;
    std::vector<double> history, x, g, nu_next;
    Anderson acceleration(DEPTH);
    bool done = false;
    for (int round = 0; round < ROUNDS && !done; ++round) {
        engine::advance(scene, s, nu.data(), h, end, members);
        for (std::size_t k = 0; k < m; ++k) {
            PatchContact &pc = contacts[k];
            if (folds(k)) set_rows(k);
            contact::Contact &c = q.contacts[k], at_end;
            const TouchingPoint &first = old[std::size_t(pc.first_point)];
            if (k == 0 || first.pair != old[std::size_t(contacts[k - 1].first_point)].pair) {
                end_points.clear();
                if (!points_of(end, first.pair, end_points)) return false;
            }
            double *at = &end_at[3 * k], share[contact::NORMALS], sum = 0;
            const bool known = found.p.size() == contact::ROWS * m;
            for (int i = 0; i < pc.points; ++i) share[i] = known ? std::fabs(found.p[contact::ROWS * k + i]) : 0.0, sum += share[i];
            la::zero(at, 3);
            TouchingPoint *there = &successors[std::size_t(pc.first_point)];
            for (int i = 0; i < pc.points; ++i) {
                const int j = pc.first_point + i;
                if (!successor(end, old[std::size_t(j)], &material[3 * std::size_t(j)], start, end_points, there[i])) return false;
                gap[j] = there[i].gap;
                for (int e = 0; e < 3; ++e) at[e] += (sum > 0 ? share[i] / sum : 1.0 / pc.points) * there[i].point[e];
            }
            // (an axis that is given is that at the end, others turn with the normal)
            const Law &law = scene.laws[scene.pairs[first.pair].law];
            if (!(law.directed && law.e[0] != law.e[1]))
                turned(first.t, first.n, there[0].n, there[0].t), turned(first.o, first.n, there[0].n, there[0].o);
            Rows end_rows;
            contact_rows(scene, end, there, pc.points, at, index, c.turns, at_end, end_rows);
            c.turned = !brief;
            for (int side = 0; side < 2 && c.turned; ++side) {
                const double *w = &nu[6 * std::size_t(side ? first.second : first.first) + 3], theta[3] = {h * w[0], h * w[1], h * w[2]};
                for (int r = 0; r < c.rows; ++r) {
                    double *G = c.G[side][r], *own = at_end.J[side][r];
                    const double *J = c.J[side][r];
                    if (dim == 3) at_motion(theta, own + 3);
                    for (int i = 0; i < q.dof; ++i) G[i] = r < c.normals ? own[i] : (J[i] + own[i]) / 2;
                }
            }
            double rows[contact::ROWS];
            seen(c, first, nu.data(), dim, rows);
            for (int r = 0; r < c.rows; ++r) {
                const std::size_t place = contact::FRICTION * k + std::size_t(r - c.normals);
                if (r >= c.normals && r < c.end()) mean[place] = rows[r];
                c.w[r] = brief ? 0.0 : r < c.normals ? gap[pc.first_point + r] / h - rows[r] : 0.0;
                if (!brief && lag[k] && r >= c.normals) c.w[r] = (r < c.end() ? start_slip[place] : start_spin[k]) - rows[r];
            }
            if (folds(k)) fold(c, &start_slip[contact::FRICTION * k]);
        }
        for (int j = 0; j < n; ++j) {
            const int b = members[j];
            double *free = &q.v_free[std::size_t(j) * q.dof];
            for (int i = 0; i < dim; ++i) free[i] = s.body[b].v[i] + kick[6 * b + i];
            if (dim == 2) {
                free[2] = s.body[b].w[2] + kick[6 * b + 5];
                continue;
            }
            // D(h w)^T J w - J w_0, by Newton's method: its derivative stands in M
            const double *w = &nu[6 * b + 3];
            double A[9], inverse[9], rest[3], turn[3];
            angular_momentum(scene, s.body[b], b, w, h, A, rest);
            for (int i = 0; i < 3; ++i) rest[i] = -rest[i];
            add_momentum(scene, s.body[b], b, h, rest);
            if (!la::inverse(A, inverse)) return false;
            la::times(inverse, rest, turn);
            for (int i = 0; i < 3; ++i) free[3 + i] = w[i] + turn[i];
            double *M = &q.M[std::size_t(j) * 36], *Mi = &q.M_inverse[std::size_t(j) * 36];
            for (int a = 0; a < 3; ++a)
                for (int e = 0; e < 3; ++e) M[6 * (3 + a) + 3 + e] = A[3 * a + e], Mi[6 * (3 + a) + 3 + e] = inverse[3 * a + e];
        }
        if (slides) {
            std::vector<contact::Held> held(m);
            for (std::size_t k = 0; k < m; ++k) {
                held[k].slides = (*slides)[k];
                for (int r = 0; r < contacts[k].rows.count; ++r) held[k].along[r] = start_slip[contact::FRICTION * k + r];
                make_unit(held[k].along, contacts[k].rows.count);
            }
            const bool solved = contact::solve_held(q, held, LAW * speed, found);
            tally(found);
            if (!solved) return false;
        } else {
            const bool solved = contact::solve(q, close / 3 * speed, SOLVED_TO * speed, found, m > FEW ? ROUGH : 0.0, failures < PATIENT, NEARLY * speed);
            tally(found);
            // (rows that depend on each other may contradict each other by what the rounds have yet to find)
            if (!solved && !(found.error <= LAW * speed) && !(round > 0 && found.error < PROGRESS * law_error)) {
                ++failures;
                return false;
            }
            last_error = law_error, law_error = found.error;
            for (std::size_t k = 0; k < m; ++k) {
                if (!folds(k)) continue;
                double *p = &found.p[contact::ROWS * k], *u = &found.u[contact::ROWS * k], along[contact::FRICTION];
                const int count = contacts[k].rows.count;
                la::copy(&start_slip[contact::FRICTION * k], along, count), make_unit(along, count);
                for (int r = 0; r < count; ++r) {
                    p[1 + r] = -q.contacts[k].mu * p[0] * along[r], u[1 + r] = start_slip[contact::FRICTION * k + std::size_t(r)];
                }
            }
        }
        double change = 0;
        x.clear(), g.clear();
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < q.dof; ++i) {
                const int b = members[j];
                const double own = nu[6 * std::size_t(b) + (dim == 2 && i == 2 ? 5 : i)];
                const double scale = i < dim ? 1.0 : scene.size[b], next = found.v[std::size_t(j) * q.dof + i];
                change = std::max(change, scale * std::fabs(next - own));
                x.push_back(scale * own), g.push_back(scale * next);
            }
        // friction acts where the points' impulses are balanced
        double shift = 0;
        for (std::size_t k = 0; k < m; ++k) {
            if (contacts[k].points == 1 || !contacts[k].rows.count) continue;
            const double size = old[std::size_t(contacts[k].first_point)].size;
            shift = std::max(shift, balance(old, contacts[k], &found.p[contact::ROWS * k]) / size);
            if (q.contacts[k].turns) found.p[contact::ROWS * k + std::size_t(q.contacts[k].end())] = 0;
            set_rows(k);
        }
        change /= speed;
        history.push_back(change);
        out.iterations = round + 1;
        const double rounding = 3e-16 * reach / (std::fabs(h) * speed); // of gaps over the step
        if (history.size() > 3) least = std::min(least, history[history.size() - 4]);
        bool settled = (brief && round > 0) || change <= close || (change < ENOUGH + rounding && change > least / 2);
        settled &= found.error <= LAW * speed && (found.error <= SOLVED_TO * speed || found.error > PROGRESS * last_error);
        settled &= shift <= SHIFT || (shift < ENOUGH && shift > moved / 2);
        const double worse = std::max(change, shift);
        history.back() = worse;
        if (history.size() > PATIENCE && worse > ENOUGH + rounding && worse > 0.5 * history[history.size() - PATIENCE]) return false;
        error = change, moved = shift;
        const bool fast = history.size() > 1 && change < FAST * history[history.size() - 2];
        if (settled || fast || change > 0.1) nu_next = g; // (impulses and velocities that belong together)
        else acceleration.next(x, g, nu_next);
        for (int j = 0, k = 0; j < n; ++j)
            for (int i = 0; i < q.dof; ++i, ++k) {
                const int b = members[j];
                nu[6 * std::size_t(b) + (dim == 2 && i == 2 ? 5 : i)] = nu_next[k] / (i < dim ? 1.0 : scene.size[b]);
            }
        for (int b : members)
            if (!(std::fabs(h) * la::length(&nu[6 * std::size_t(b) + 3]) <= MAX_TURN)) return false;
        if (!settled) continue;
        bool back = false;
        for (std::size_t k = 0; k < m; ++k) {
            if (!lag[k]) continue;
            double along = 0;
            for (int r = 0; r < contacts[k].rows.count; ++r) along += mean[contact::FRICTION * k + r] * start_slip[contact::FRICTION * k + r];
            if (along <= 0 && slides) return false;
            if (along > 0) continue;
            lag[k] = 0, back = true;
            set_rows(k);
        }
        done = !back;
        if (back) history.clear(), least = INFINITY, acceleration.forget();
    }
    if (!done) return false;
    if (!brief && count && !slides) remember(old, contacts, found, h / 2);
    engine::advance(scene, s, nu.data(), h, end, members);
    out.half = nu;
    out.residual = std::max(error < 1 ? error : 0.0, found.error / speed);
    for (std::size_t k = 0; k < m; ++k) {
        const PatchContact &c = contacts[k];
        const double *p = &found.p[contact::ROWS * k], *u = &found.u[contact::ROWS * k];
        if (slides && !held_in(p, h, q.contacts[k], (*slides)[k])) return false;
        double sum = 0, low = INFINITY;
        if (!c.rows.count) balance(old, contacts[k], p);
        for (int i = 0; i < c.points; ++i) sum += p[i], low = std::min(low, gap[c.first_point + i]);
        const TouchingPoint &first = old[std::size_t(c.first_point)];
        if (sum == 0 && low > TOUCH * first.size) continue;
        ContactRecord made = record(first, POSITION, c.rows, p + c.points, u + c.points);
        made.p_n = sum, made.gap = low, made.lagged = lag[k], made.own_gap = brief, made.impact = struck(old, c);
        made.slid = lag[k] || (c.points > 1 && slips(s, first, c.at) > SLIDES * speed);
        la::copy(c.at, made.point), la::copy(brief ? c.at : &end_at[3 * k], made.end_point);
        out.contacts.push_back(made);
    }
    return velocity_stage(h, start, old, slides, speed, contacts, out, end_points);
}

// Stage 2: velocities that carry stage 1's momentum, loads, and the contacts that are still closed.
bool Island::velocity_stage(double h, const Points &start, const Points &old, const std::vector<char> *slides, double speed,
                            const std::vector<PatchContact> &before, Solve &out, Points &end_points) {
    const int dim = scene.dim, n = int(members.size());
    const bool brief = std::fabs(h) < SHORT * step;
    State &end = out.end;
    for (int b : members) {
        BodyState &own = end.body[b];
        if (dim == 2) continue;
        const double theta[3] = {-h * own.w[0], -h * own.w[1], -h * own.w[2]};
        double D[9], J_W[9], J_inverse[9], momentum[3];
        tangent_inverse(theta, D);
        world_inertia(scene, own, b, J_W);
        la::inverse(J_W, J_inverse);
        la::times(J_W, own.w, momentum);
        la::transposed_times(D, momentum, momentum);
        la::times(J_inverse, momentum, own.w);
    }
    std::vector<double> kick(6 * std::size_t(scene.bodies), 0.0);
    load_velocities(end, h / 2, kick.data());
    for (int b : members)
        for (int i = 0; i < 3; ++i) end.body[b].v[i] += kick[6 * b + i], end.body[b].w[i] += kick[6 * b + 3 + i];
    end_points.clear();
    if (!points(end, 0.0, end_points)) return false;
    Points closed;
    for (const TouchingPoint &p : end_points) {
        if (!p.closed() && !(slides && same(old, p))) continue;
        const bool mine = std::any_of(old.begin(), old.end(), [&](const TouchingPoint &o) { return o.pair == p.pair; });
        if (mine && (same(old, p) || (!slides && !same(start, p)))) closed.push_back(p);
    }
    if (closed.empty()) return true;
    contact::Problem q;
    masses(end, q);
    for (int j = 0; j < n; ++j) {
        const BodyState &own = end.body[members[j]];
        double *free = &q.v_free[std::size_t(j) * q.dof];
        for (int i = 0; i < dim; ++i) free[i] = own.v[i];
        if (dim == 2) free[2] = own.w[2];
        else la::copy(own.w, free + 3);
    }
    std::vector<PatchContact> contacts = patch_contacts(closed, split);
    const std::size_t m = contacts.size();
    q.contacts.resize(m);
    // contacts that closed on the way, and their velocities before, where they are now [Newton's law]
    State as_before = end;
    for (int b : members) la::copy(out.start.body[b].v, as_before.body[b].v), la::copy(out.start.body[b].w, as_before.body[b].w);
    std::vector<char> hit(m, 0);
    std::vector<double> bounce(closed.size(), 0.0), approach(m, 0.0);
    for (std::size_t k = 0; k < m; ++k)
        for (int i = 0; i < contacts[k].points; ++i) {
            const std::size_t at = std::size_t(contacts[k].first_point + i);
            const Pair &pair = scene.pairs[closed[at].pair];
            const TouchingPoint *was = same(old, closed[at]);
            const auto rests = [&](const TouchingPoint &p) { return p.pair == closed[at].pair && p.resting(); };
            if (was ? was->resting() : std::any_of(old.begin(), old.end(), rests)) continue;
            double u[4];
            relative_velocity(as_before, closed[at], closed[at].point, u);
            hit[k] = 1, approach[k] = std::min(approach[k], u[0]);
            const double e = scene.laws[pair.law].restitution, slow = REST * (pulled[pair.body[0]] + pulled[pair.body[1]]);
            if (-e * u[0] > slow) bounce[at] = e * u[0];
        }
    const auto set_rows = [&](std::size_t k) {
        PatchContact &c = contacts[k];
        contact_rows(scene, end, &closed[std::size_t(c.first_point)], c.points, c.at, index, !slides, q.contacts[k], c.rows);
        for (int i = 0; i < c.points; ++i) q.contacts[k].w[i] = bounce[std::size_t(c.first_point + i)];
    };
    contact::Solution found;
    for (std::size_t k = 0; k < m; ++k) set_rows(k); // (how many rows of friction)
    if (!brief && !slides) warm_start(closed, contacts, h / 2, found);
    std::vector<contact::Held> held(m);
    if (slides)
        for (std::size_t k = 0; k < m; ++k) {
            held[k].slides = false;
            for (std::size_t i = 0; i < before.size(); ++i)
                if (old[std::size_t(before[i].first_point)].pair == closed[std::size_t(contacts[k].first_point)].pair) held[k].slides = (*slides)[i];
            for (double &along : held[k].along) along = 0;
        }
    bool done = false;
    double last = INFINITY;
    std::vector<double> x, g, next;
    Anderson acceleration(DEPTH);
    for (int round = 0; round < STAGE_ROUNDS && !done; ++round) {
        double change = 0;
        for (std::size_t k = 0; k < m; ++k) set_rows(k);
        if (slides) { // friction against the slip that comes out
            for (std::size_t k = 0; k < m; ++k) {
                double along[contact::ROWS] = {0};
                const contact::Contact &c = q.contacts[k];
                for (int r = 0; r < contacts[k].rows.count; ++r) {
                    const int row = c.normals + r;
                    if (round) along[r] = found.u[contact::ROWS * k + row];
                    else
                        for (int side = 0; side < 2; ++side)
                            if (c.body[side] >= 0)
                                for (int j = 0; j < q.dof; ++j) along[r] += c.J[side][row][j] * q.v_free[std::size_t(c.body[side]) * q.dof + j];
                }
                make_unit(along, contacts[k].rows.count);
                if (held[k].slides)
                    for (int r = 0; r < contacts[k].rows.count; ++r) change = std::max(change, std::fabs(along[r] - held[k].along[r]));
                la::copy(along, held[k].along);
            }
            const bool solved = contact::solve_held(q, held, LAW * speed, found);
            tally(found);
            if (!solved) return false;
        } else {
            contact::solve(q, (m > FEW ? CROWDED : CLOSE) / 3 * speed, 1e-10 * speed, found);
            tally(found);
        }
        if (!(found.error <= LAW * speed)) return false;
        x.clear(), g.clear();
        for (std::size_t k = 0; k < m; ++k) {
            if (contacts[k].points == 1 || !contacts[k].rows.count) continue;
            const double size = closed[std::size_t(contacts[k].first_point)].size;
            for (int i = 0; i < 3; ++i) x.push_back(contacts[k].at[i] / size);
            change = std::max(change, balance(closed, contacts[k], &found.p[contact::ROWS * k]) / size);
            for (int i = 0; i < 3; ++i) g.push_back(contacts[k].at[i] / size);
        }
        done = change <= SHIFT || (change < ENOUGH && change > last / 2);
        last = change;
        if (done || x.empty()) continue;
        for (std::size_t k = 0; k < m; ++k)
            if (q.contacts[k].turns) found.p[contact::ROWS * k + std::size_t(q.contacts[k].end())] = 0;
        if (!slides) continue;
        acceleration.next(x, g, next);
        for (std::size_t k = 0, place = 0; k < m; ++k) {
            if (contacts[k].points == 1 || !contacts[k].rows.count) continue;
            const double size = closed[std::size_t(contacts[k].first_point)].size;
            for (int i = 0; i < 3; ++i) contacts[k].at[i] = next[place++] * size;
        }
    }
    if (!done) return false;
    out.residual = std::max(out.residual, found.error / speed);
    std::vector<char> slid(m);
    for (std::size_t k = 0; k < m; ++k)
        slid[k] = contacts[k].points > 1 && slips(end, closed[std::size_t(contacts[k].first_point)], contacts[k].at) > SLIDES * speed;
    for (int j = 0; j < n; ++j) {
        BodyState &own = end.body[members[j]];
        const double *v = &found.v[std::size_t(j) * q.dof];
        for (int i = 0; i < dim; ++i) own.v[i] = v[i];
        if (dim == 2) own.w[2] = v[2];
        else la::copy(v + 3, own.w);
    }
    for (std::size_t k = 0; k < m; ++k) {
        const PatchContact &c = contacts[k];
        const double *p = &found.p[contact::ROWS * k], *u = &found.u[contact::ROWS * k];
        if (slides && !held_in(p, h, q.contacts[k], held[k].slides)) return false;
        if (!c.rows.count) balance(closed, contacts[k], p);
        const TouchingPoint &first = closed[std::size_t(c.first_point)];
        ContactRecord made = record(first, VELOCITY, c.rows, p + c.points, u + c.points);
        made.gap = INFINITY, made.slid = slid[k], made.impact = hit[k], made.approach = approach[k];
        for (int i = 0; i < c.points; ++i) {
            const std::size_t at = std::size_t(c.first_point + i);
            made.p_n += p[i], made.gap = std::min(made.gap, closed[at].gap), made.bounce = std::min(made.bounce, bounce[at]);
        }
        la::copy(c.at, made.point), la::copy(c.at, made.end_point);
        out.contacts.push_back(made);
    }
    // (velocities of the points changed with those of the bodies)
    for (TouchingPoint &p : end_points) {
        double u[4];
        relative_velocity(end, p, p.point, u);
        p.velocity = u[0];
    }
    return true;
}

// Five flights composed to one of order four [Suzuki 1990]; false where a contact changes its mode.
bool Island::composed(const State &s, double h, const Points &start, const Points &old, std::vector<Solve> &out, Points &end) {
    const double share = 1 / (4 - std::cbrt(4.0)), parts[5] = {share, share, 1 - 4 * share, share, share};
    out.clear();
    Solve f;
    pressed.clear();
    if (!flight(s, share * h, start, old, nullptr, f, end)) return false;
    // which contacts press, and whether they slide: in both stages the same
    const double speed = speed_of(s, h);
    Points kept;
    std::vector<int> mode(scene.pairs.size(), -1), seen_in(scene.pairs.size(), 0);
    for (const ContactRecord &c : f.contacts) {
        const int slides = la::length(c.slip) > SLIDES * speed;
        if (!(c.p_n > 0) || (mode[c.pair] >= 0 && mode[c.pair] != slides)) return false;
        mode[c.pair] = slides, ++seen_in[c.pair];
    }
    for (std::size_t k = 0; k < old.size(); ++k) {
        if (mode[old[k].pair] < 0) continue;
        if (seen_in[old[k].pair] != 2) return false;
        if (k < pressed.size() && pressed[k].normal > 0) kept.push_back(old[k]);
    }
    out.push_back(f);
    for (int k = 1; k < 5; ++k) {
        const State here = out.back().end;
        Points now, mine;
        if (!points(here, 0.0, now)) return false;
        for (const TouchingPoint &p : kept) {
            const TouchingPoint *found = same(now, p);
            if (!found) return false;
            mine.push_back(*found);
        }
        std::vector<char> slides;
        for (const PatchContact &c : patch_contacts(mine, split)) slides.push_back(char(mode[mine[std::size_t(c.first_point)].pair]));
        if (!flight(here, parts[k] * h, now, mine, &slides, f, end)) return false;
        for (const TouchingPoint &p : end)
            if (same(old, p) && p.gap < -TOUCH * p.size) return false;
        out.push_back(f);
    }
    return true;
}

} // namespace engine
