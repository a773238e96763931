#include "island.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>

namespace engine {

namespace {

constexpr int TRIALS = 80;
constexpr double COMPOSED = 1e-3; // of a step: flights shorter than that need not be of order four
constexpr double FINEST_PART = 1.0 / 8192; // of a step: where flights that short are refused, the end-of-step form takes over
constexpr std::size_t FEW_BODIES = 3;      // of an island: more are a crowd
constexpr double FINEST_CROWD = 1.0 / 64;  // the same of more bodies than those
constexpr double FINEST_ASKED = 1.0 / 8; // the same where closest points are asked for elsewhere, at a thousand times the cost
constexpr int CROSSINGS = 12;     // trials of a length at which a contact that runs crosses a body without loss or gain
constexpr double SHORTEST_REST = 1.0 / 32; // of such a flight: a part in that form may be that short
constexpr double GROWS = 1.25;    // and then that much more than the one before it
constexpr int MOST_FLIGHTS = 4000; // of an island in a step
constexpr double AHEAD = 1.5;      // over the way that a point goes: how far ahead contacts of an uncut flight are looked for
constexpr int MORE_CONTACTS = 8;   // times that others are found
constexpr double SHORTEST_UNCUT = 1.0 / 64; // of a step
constexpr double AIM = 0.01;     // of the gap that counts as none: where a flight is to end
constexpr double DEEPEST = 2e-12; // overlap at an impact, over the smaller body's size, that counts as none
constexpr double FAR = 1e-15;     // the same, over the distance from the origin: rounding
constexpr double OVERLAP = 1e-9;  // at the end of a flight, over the same: more is refused
constexpr double DEEP = 0.2;     // overlap over the smaller body's size that says nothing about the instant
constexpr double CROSSING = 1e-3; // overlap on the way, over the same, that counts as crossing
constexpr double SHALLOW = 0.05;  // the same, up to which the way between two instants is taken for a cubic
constexpr int FINEST_REST = 6;   // halvings of a part in the end-of-step form
constexpr int FINEST = 60;       // halvings of a motion that is looked at for a crossing
constexpr double IMPACT_LAW = 1e-9; // error of an impact's law, over the speeds at hand

// The first zero, after t0, of the cubic with these values and slopes at t0 and t1; infinite where none.
double first_zero(double t0, double g0, double v0, double t1, double g1, double v1) {
    const double h = t1 - t0, a = 2 * (g0 - g1) + h * (v0 + v1), b = 3 * (g1 - g0) - h * (2 * v0 + v1), c = h * v0;
    const auto at = [&](double x) { return ((a * x + b) * x + c) * x + g0; };
    // between its turning points the cubic is monotone
    double turns[4] = {1e-12, 1, 1, 1};
    int count = 1;
    const double disc = b * b - 3 * a * c;
    if (std::fabs(a) < 1e-300) {
        if (b != 0) turns[count++] = -c / (2 * b);
    } else if (disc > 0) {
        const double root = std::sqrt(disc), q = -(b + std::copysign(root, b));
        double x1 = q / (3 * a), x2 = q != 0 ? c / q : 0;
        if (x1 > x2) std::swap(x1, x2);
        turns[count++] = x1, turns[count++] = x2;
    }
    double left = turns[0], f_left = at(left);
    for (int i = 1; i <= count; ++i) {
        const double right = i < count ? turns[i] : 1.0;
        if (!(right > left && right <= 1)) continue;
        const double f_right = at(right);
        if ((f_left > 0) != (f_right > 0)) {
            double lo = left, hi = right, x = (lo + hi) / 2;
            for (int k = 0; k < 60 && hi - lo > 1e-16; ++k) {
                const double f = at(x), slope = (3 * a * x + 2 * b) * x + c;
                if ((f > 0) == (f_left > 0)) lo = x;
                else hi = x;
                double next = slope != 0 ? x - f / slope : -1;
                if (!(next > lo && next < hi)) next = (lo + hi) / 2;
                if (next == x) break;
                x = next;
            }
            return t0 + h * x;
        }
        left = right, f_left = f_right;
    }
    return INFINITY;
}

// The least value on the way of the cubic with these values and slopes at both ends of a time h.
double least_between(double g0, double v0, double g1, double v1, double h) {
    const double a = 2 * (g0 - g1) + h * (v0 + v1), b = 3 * (g1 - g0) - h * (2 * v0 + v1), c = h * v0;
    const double disc = b * b - 3 * a * c;
    double least = std::min(g0, g1);
    if (!(disc > 0)) return least;
    const double q = -(b + std::copysign(std::sqrt(disc), b));
    for (double x : {q / (3 * a), c / q})
        if (x > 0 && x < 1) least = std::min(least, ((a * x + b) * x + c) * x + g0);
    return least;
}

double length_of(const std::vector<Solve> &flown) {
    double sum = 0;
    for (const Solve &f : flown) sum += f.h;
    return sum;
}

} // namespace

Island::Island(const Scene &scene, std::vector<int> own, std::vector<int> candidates, double step)
    : scene(scene), members(std::move(own)), pairs(std::move(candidates)), index(scene.bodies, -1),
      mask(scene.bodies, 0), pulled(scene.bodies, 0.0), step(step), finest(FINEST_PART), spent(scene.bodies, 0.0) {
    for (std::size_t j = 0; j < members.size(); ++j) index[members[j]] = int(j), mask[members[j]] = 1;
    if (members.size() > FEW_BODIES) finest = FINEST_CROWD;
    for (int pair : pairs)
        for (int piece : scene.pairs[pair].piece)
            if (scene.pieces[piece].shape.kind == geometry::FOREIGN) finest = FINEST_ASKED;
    for (int b : members) pulled[b] = step * la::length(&scene.load[6 * std::size_t(b)]) / scene.mass[b];
}

void Island::tally(const contact::Solution &found) { ++rounds, factorisations += found.factorisations; }

bool Island::points_of(const State &s, int pair, Points &out) const {
    return touching_points(scene, s, pair, pulled.data(), out);
}

// Distance of the balls that hold the pieces of a pair, or of a ball over a plane, m; -1 where there is none.
double Island::ball_gap(const State &s, int number) const {
    const Pair &pair = scene.pairs[number];
    double away = 0, centre[2][3];
    bool balls = true;
    for (int side = 0; side < 2; ++side) {
        const Piece &piece = scene.pieces[pair.piece[side]];
        const BodyState &b = s.body[piece.body];
        if (piece.radius < 0) {
            balls = false;
            continue;
        }
        la::times(b.R, piece.centre, centre[side]);
        for (int i = 0; i < 3; ++i) centre[side][i] += b.x[i];
        away -= piece.radius;
    }
    double d[3];
    if (balls) {
        la::subtract(centre[1], centre[0], d);
        return away + la::length(d);
    }
    const Piece &first = scene.pieces[pair.piece[0]];
    if (first.shape.kind != geometry::HALFSPACE || scene.pieces[pair.piece[1]].radius < 0) return -1;
    double n[3], own[3], r[3];
    la::times(first.R, first.shape.par, own);
    la::times(s.body[first.body].R, own, n);
    la::times(s.body[first.body].R, first.x, r);
    for (int i = 0; i < 3; ++i) r[i] += s.body[first.body].x[i];
    la::subtract(centre[1], r, r);
    return away + la::dot(n, r) - first.shape.par[3];
}

// Points of the pairs whose balls may meet within a time.
bool Island::points(const State &s, double time, Points &out) const {
    for (int number : pairs) {
        const Pair &pair = scene.pairs[number];
        const double away = ball_gap(s, number);
        double reach = 0.01 * pair.size;
        for (int side = 0; side < 2; ++side) {
            const int b = pair.body[side];
            reach += time * (la::length(s.body[b].v) + (scene.moves[b] ? scene.size[b] * 2 * la::length(s.body[b].w) : 0.0) + pulled[b]);
        }
        if (away > 2 * reach) continue;
        if (!points_of(s, number, out)) return false;
    }
    return true;
}

void Island::masses(const State &s, contact::Problem &q) const {
    const std::size_t n = members.size(), m = std::size_t(scene.dof);
    q.dof = scene.dof, q.bodies = int(n);
    q.M.assign(n * m * m, 0.0), q.M_inverse.assign(n * m * m, 0.0), q.v_free.assign(n * m, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        const int b = members[j];
        double *M = &q.M[j * m * m], *Mi = &q.M_inverse[j * m * m], J_W[9], inverse[9];
        for (int i = 0; i < scene.dim; ++i) M[i * m + i] = scene.mass[b], Mi[i * m + i] = 1 / scene.mass[b];
        world_inertia(scene, s.body[b], b, J_W);
        if (scene.dim == 2) {
            M[8] = J_W[8], Mi[8] = 1 / J_W[8];
            continue;
        }
        la::inverse(J_W, inverse);
        for (int a = 0; a < 3; ++a)
            for (int c = 0; c < 3; ++c)
                M[(3 + a) * 6 + 3 + c] = J_W[3 * a + c], Mi[(3 + a) * 6 + 3 + c] = inverse[3 * a + c];
    }
}

void Island::load_velocities(const State &s, double h, double *nu) const {
    for (int b : members) {
        const double *load = &scene.load[6 * std::size_t(b)];
        for (int i = 0; i < 3; ++i) nu[6 * b + i] += h * load[i] / scene.mass[b];
        if (load[3] == 0 && load[4] == 0 && load[5] == 0) continue;
        double J_W[9], inverse[9], turn[3];
        world_inertia(scene, s.body[b], b, J_W);
        la::inverse(J_W, inverse);
        la::times(inverse, load + 3, turn);
        for (int i = 0; i < 3; ++i) nu[6 * b + 3 + i] += h * turn[i];
    }
}

double Island::speed_of(const State &s, double h) const {
    double most = 1e-300;
    for (int b : members)
        most = std::max(most, la::length(s.body[b].v) + scene.size[b] * la::length(s.body[b].w) + pulled[b] * std::fabs(h) / step);
    return most;
}

void Island::remember(const Points &points, const std::vector<PatchContact> &contacts, const contact::Solution &found,
                      double time) {
    pressed.resize(points.size());
    for (std::size_t k = 0; k < contacts.size(); ++k)
        for (int i = 0; i < contacts[k].points; ++i) {
            const std::size_t at = std::size_t(contacts[k].first_point + i);
            const double *p = &found.p[contact::ROWS * k];
            pressed[at].pair = points[at].pair, pressed[at].tag = points[at].tag, pressed[at].normal = p[i] / time;
            pressed[at].weight = found.weight;
            friction_in_world(points[at], contacts[k].rows, p + contacts[k].points, pressed[at].friction);
            for (double &f : pressed[at].friction) f /= time;
        }
}

void Island::warm_start(const Points &points, std::vector<PatchContact> &contacts, double time,
                        contact::Solution &found) const {
    if (pressed.empty()) return;
    found.p.assign(contact::ROWS * contacts.size(), 0.0);
    std::size_t at = 0; // (both are in the same order, but for a few)
    for (std::size_t k = 0; k < contacts.size(); ++k) {
        double *own = &found.p[contact::ROWS * k];
        for (int j = 0; j < contacts[k].points; ++j) {
            const TouchingPoint &point = points[std::size_t(contacts[k].first_point + j)];
            for (std::size_t i = 0; i < pressed.size(); ++i) {
                const Pressed &p = pressed[(at + i) % pressed.size()];
                if (p.pair != point.pair || p.tag != point.tag) continue;
                own[j] = time * p.normal;
                double world[4];
                for (int r = 0; r < 4; ++r) world[r] = time * p.friction[r];
                friction_of_rows(point, contacts[k].rows, world, own + contacts[k].points);
                at = (at + i + 1) % pressed.size();
                break;
            }
        }
        balance(points, contacts[k], own);
    }
    found.weight = pressed[0].weight;
}

ContactRecord Island::record(const TouchingPoint &p, int stage, const Rows &rows, const double *friction,
                             const double *slip) const {
    ContactRecord r = {};
    r.pair = p.pair, r.tag = p.tag, r.stage = stage;
    la::copy(p.point, r.point), la::copy(p.n, r.n), la::copy(p.t, r.t), la::copy(p.o, r.o), la::copy(p.point, r.end_point);
    r.gap = p.gap;
    for (int i = 0; i < rows.count; ++i) {
        const int which = rows.component[i];
        r.p_f[which] = rows.scale[i] * friction[i], r.slip[which] = slip[i] / rows.scale[i];
    }
    return r;
}

// The jump of the velocities at a pose, by Newton's law: one problem for all contacts that are closed there.
//
//   M (nu+ - nu-) = H p,   0 <= p_n _|_ u_n+ + e u_n- >= 0,   friction of the whole impulse against u_t+
bool Island::impact(const State &s, const Points &start, bool inelastic, Solve &out) {
    Points closed;
    for (const TouchingPoint &p : start)
        if (p.closed()) closed.push_back(p);
    contact::Problem q;
    masses(s, q);
    const std::size_t n = members.size(), count = closed.size();
    q.contacts.resize(count);
    std::vector<Rows> rows(count);
    std::vector<double> before(4 * count), bounce(count, 0.0);
    double speed = speed_of(s, 0.0);
    for (std::size_t k = 0; k < count; ++k) {
        contact_rows(scene, s, &closed[k], 1, closed[k].point, index, false, q.contacts[k], rows[k]);
        relative_velocity(s, closed[k], closed[k].point, &before[4 * k]);
        const Pair &pair = scene.pairs[closed[k].pair];
        const double e = inelastic ? 0.0 : scene.laws[pair.law].restitution;
        const double slow = REST * (pulled[pair.body[0]] + pulled[pair.body[1]]);
        if (-e * before[4 * k] > slow) bounce[k] = e * before[4 * k];
    }
    for (std::size_t j = 0; j < n; ++j) {
        const BodyState &b = s.body[members[j]];
        double *free = &q.v_free[j * q.dof];
        for (int i = 0; i < scene.dim; ++i) free[i] = b.v[i];
        if (scene.dim == 2) free[2] = b.w[2];
        else la::copy(b.w, free + 3);
    }
    contact::Solution found;
    for (std::size_t k = 0; k < count; ++k) q.contacts[k].w[0] = bounce[k];
    contact::solve(q, 1e-14 * speed, 1e-11 * speed, found);
    tally(found);
    if (!(found.error <= IMPACT_LAW * speed)) return false;
    out = Solve();
    out.form = IMPACT_STEP, out.h = 0, out.start = out.end = s, out.bodies = mask;
    out.half.assign(6 * std::size_t(scene.bodies), 0.0);
    for (int b = 0; b < scene.bodies; ++b)
        for (int i = 0; i < 3; ++i) out.half[6 * b + i] = s.body[b].v[i], out.half[6 * b + 3 + i] = s.body[b].w[i];
    for (std::size_t j = 0; j < n; ++j) {
        BodyState &b = out.end.body[members[j]];
        const double *v = &found.v[j * q.dof];
        for (int i = 0; i < scene.dim; ++i) b.v[i] = v[i];
        if (scene.dim == 2) b.w[2] = v[2];
        else la::copy(v + 3, b.w);
    }
    for (std::size_t k = 0; k < count; ++k) {
        const double *p = &found.p[contact::ROWS * k], *u = &found.u[contact::ROWS * k];
        ContactRecord r = record(closed[k], IMPACT, rows[k], p + 1, u + 1);
        r.p_n = p[0];
        r.impact = 1, r.bounce = bounce[k], r.approach = before[4 * k];
        out.contacts.push_back(r);
    }
    out.iterations = std::max(1, found.factorisations);
    out.residual = found.error / speed;
    return true;
}

// How far apart a pair is at an instant of a flight, whose bodies move with constant velocities: no direction n keeps
// them farther apart. Along n they close by at most `closing` afterwards, and did by `opening` before, m/s.
Island::Apart Island::apart(const State &at, const Solve &f, const Points &points, int number, double time) const {
    const Pair &pair = scene.pairs[number];
    Apart out;
    out.time = time, out.gap = INFINITY;
    const double *n = nullptr;
    for (const TouchingPoint &p : points)
        if (p.pair == number && p.gap < out.gap) out.gap = p.gap, n = p.n, out.velocity = p.velocity;
    double relative[3], turns = 0;
    const double sign = pair.swapped ? -1 : 1;
    la::subtract(&f.half[6 * std::size_t(pair.body[1])], &f.half[6 * std::size_t(pair.body[0])], relative);
    for (int b : pair.body) {
        if (!scene.moves[b]) continue;
        const double *w = &f.half[6 * std::size_t(b) + 3];
        double across[3];
        if (n) la::cross(n, w, across);
        turns += 2 * scene.size[b] * la::length(n ? across : w);
    }
    if (n) {
        const double rate = sign * la::dot(n, relative);
        out.closing = std::max(0.0, -rate) + turns, out.opening = std::max(0.0, rate) + turns, out.known = true;
    } else {
        out.gap = ball_gap(at, number);
        out.closing = out.opening = la::length(relative) + turns;
    }
    return out;
}

// Whether a pair passes through itself on the way of a flight, between two instants; an instant when it overlaps.
bool Island::crossed(const State &s, const Solve &f, int number, const Apart &from, const Apart &to, int depth, Apart &inside) {
    // (the bounds from either end: where they meet is the deepest that the pair can be)
    const double g0 = std::max(from.gap, 0.0), g1 = std::max(to.gap, 0.0), r0 = from.closing, r1 = to.opening, h = to.time - from.time;
    const double allowed = CROSSING * scene.pairs[number].size;
    const double deepest = r0 * h <= g0 || r1 * h <= g1 ? 0.0 : (r0 * r1 * h - g0 * r1 - g1 * r0) / (r0 + r1);
    if (deepest <= allowed / 2 || depth == 0) return false;
    const bool shallow = deepest <= SHALLOW * scene.pairs[number].size && from.known && to.known;
    if (shallow && least_between(from.gap, from.velocity, to.gap, to.velocity, h) > -allowed / 2) return false;
    State between;
    const double t = (from.time + to.time) / 2;
    engine::advance(scene, s, f.half.data(), t, between, members);
    Points there;
    if (!points_of(between, number, there)) return true;
    const Apart middle = apart(between, f, there, number, t);
    if (middle.gap < -allowed) {
        inside = middle;
        return true;
    }
    return crossed(s, f, number, from, middle, depth - 1, inside) || crossed(s, f, number, middle, to, depth - 1, inside);
}

// Whether a flight takes a point beyond the other body; the least gaps at its end.
bool Island::beyond(const State &s, const std::vector<Solve> &flown, const Points &start, const Points &old,
                    const Points &end, Trial &trial) {
    const Solve &f = flown[0];
    trial.length = 0, trial.known = true;
    for (const Solve &part : flown) trial.length += part.h;
    trial.watched.clear();
    bool too_far = false;
    for (std::size_t i = 0; i < end.size();) {
        std::size_t j = i;
        const int pair = end[i].pair;
        const TouchingPoint *least = nullptr;
        bool held = false, holds = false, touches = false;
        double gap = INFINITY;
        for (; j < end.size() && end[j].pair == pair; ++j) {
            const TouchingPoint &p = end[j];
            gap = std::min(gap, p.gap);
            bool mine = false, known = false;
            for (const TouchingPoint &o : old)
                if (o.pair == pair) held = true, mine |= o.tag == p.tag;
            for (const TouchingPoint &o : start) known |= o.pair == pair && o.tag == p.tag;
            if (mine || (held && !known)) {
                holds |= p.closed();
                continue;
            }
            touches |= p.closed();
            if (!least || p.gap < least->gap) least = &p;
        }
        i = j;
        if (held && touches && !holds) {
            too_far = true; // it rocks over: off the points on which it rested
            continue;
        }
        if (least) {
            trial.watched.push_back({pair, least->gap, least->velocity, least->size});
            if (least->gap < -DEEPEST * least->size - FAR * la::length(s.body[least->second].x)) too_far = true;
        }
    }
    Apart inside;
    int through = -1;
    if (!too_far && passes(s, f, old, start, end, trial.length, flown.back().end, through, inside)) {
        too_far = true, trial.known = inside.known;
        if (inside.known) {
            trial.length = inside.time;
            trial.watched = {{through, inside.gap, inside.velocity, scene.pairs[through].size}};
        }
    }
    return too_far;
}

// Whether a pair that has no contact in a flight passes through itself on the way.
bool Island::passes(const State &s, const Solve &f, const Points &old, const Points &start, const Points &end, double length,
                    const State &last, int &through, Apart &inside) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const Pair &pair = scene.pairs[pairs[i]];
        const Piece &one = scene.pieces[pair.piece[0]], &two = scene.pieces[pair.piece[1]];
        if (one.radius < 0 || two.radius < 0) continue;
        const auto held = [&](const TouchingPoint &p) { return p.pair == pairs[i]; };
        if (std::any_of(old.begin(), old.end(), held)) continue;
        through = pairs[i], inside = Apart();
        if (crossed(s, f, through, apart(s, f, start, through, 0), apart(last, f, end, through, length), FINEST, inside)) return true;
    }
    return false;
}

// Whether a pair overlaps that did not: a contact was followed to a place where the bodies are not nearest.
bool Island::overlaps(const Points &end, const Points &start) const {
    return std::any_of(end.begin(), end.end(), [&](const TouchingPoint &p) {
        if (!(p.gap < -OVERLAP * p.size)) return false;
        return std::none_of(start.begin(), start.end(), [&](const TouchingPoint &q) { return q.pair == p.pair && q.gap < p.gap / 2; });
    });
}

double Island::next_length(const Trial &low, const Trial &high, double top) const {
    double best = INFINITY;
    for (const Watched &l : low.watched) {
        const Watched *other = nullptr;
        if (high.known)
            for (const Watched &w : high.watched)
                if (w.pair == l.pair) other = &w;
        const double aim = AIM * TOUCH * l.size;
        if (other && other->gap > -DEEP * l.size) {
            if (other->gap < aim)
                best = std::min(best, first_zero(low.length, l.gap - aim, l.velocity, top, other->gap - aim, other->velocity));
        } else if (l.velocity < 0) {
            best = std::min(best, low.length + (l.gap - aim) / -l.velocity);
        }
    }
    return best > low.length && best < top ? best : (low.length + top) / 2;
}

// A flight, of order four where that is asked for and no contact changes its mode.
bool Island::fly(const State &s, double h, const Points &start, const Points &old, std::vector<Solve> &out, Points &end) {
    if (scene.fourth && h >= COMPOSED * step && composed(s, h, start, old, out, end)) return true;
    out.assign(1, Solve());
    return flight(s, h, start, old, nullptr, out[0], end);
}

// One flight from s, as long as nothing closes in it, at most `left`; false where none is found.
bool Island::part(const State &s, double left, const Points &start, std::vector<Solve> &out) {
    Points old, end;
    for (const TouchingPoint &p : start)
        if (p.resting()) old.push_back(p);
    Trial low, high, trial;
    low.known = true;
    for (std::size_t i = 0; i < start.size();) {
        std::size_t j = i;
        const TouchingPoint *least = nullptr;
        for (; j < start.size() && start[j].pair == start[i].pair; ++j)
            if (!start[j].resting() && (!least || start[j].gap < least->gap)) least = &start[j];
        if (least) low.watched.push_back({least->pair, least->gap, least->velocity, least->size});
        i = j;
    }
    const double limit = std::min(left, 2 * stride);
    double top = limit, length = limit;
    bool bounded = false; // whether `top` is known to be too far
    bool divides = false;
    int last = 0; // sign of the energy that the last trial made too much of
    double last_length = 0;
    std::vector<Solve> best, f;
    bool have = false;
    for (int k = 0; k < TRIALS; ++k) {
        bool ok = fly(s, length, start, old, f, end);
        bool too_far = false;
        if (ok) too_far = beyond(s, f, start, old, end, trial);
        if (ok && !too_far && overlaps(end, start)) ok = false;
        int energy = ok && !too_far ? judged(f, length == step) : 0;
        if (energy && last && energy != last) { // between the two, one that crosses and makes nothing
            double wrong = length, other = last_length;
            for (int i = 0; i < CROSSINGS && energy; ++i) {
                const double middle = (wrong + other) / 2;
                if (!fly(s, middle, start, old, f, end) || beyond(s, f, start, old, end, trial) || overlaps(end, start)) break;
                const int found = judged(f, false);
                (found == energy ? wrong : other) = middle;
                if (!found) energy = 0, length = middle;
            }
        }
        if (energy || !ok) {
            if (have) break;
            if (!divided) divided = energy ? GAINS : ROUNDS_DIVERGE;
            if (length == left && settles(s, left, out)) return true;
            used_parts = true;
            if (length / 2 < finest * step) return false;
            last = energy, last_length = length;
            top = length = length / 2, bounded = false, high.known = false;
            divides = true, stride = length;
            continue;
        }
        if (too_far) {
            high = trial, top = std::min(length, trial.length), bounded = true;
        } else {
            double least = INFINITY;
            for (const Watched &w : trial.watched)
                if (w.velocity < 0) least = std::min(least, w.gap / w.size);
            best = f, have = true;
            if (!bounded || least <= TOUCH) break;
            low = trial;
            if (top - low.length <= 1e-15 * step) break;
        }
        length = next_length(low, high, top);
        if (!(length > low.length && length < top)) break;
    }
    if (!have) {
        if (!divided) divided = NO_INSTANT;
        return false;
    }
    if (!divides && length_of(best) >= limit) stride = std::max(stride, limit);
    used_plain |= best.size() == 1 && best[0].h >= COMPOSED * step;
    spend(best);
    out.insert(out.end(), best.begin(), best.end());
    return true;
}

// A part of the step, at most `left`, in the end-of-step form: one that makes and loses no more than it may, or is
// about as short as `least`.
bool Island::rest(const State &s, double left, double least, std::vector<Solve> &out) {
    double length = left;
    Solve e, trial, losing;
    bool have = false, loses = false;
    for (int k = 0; k <= FINEST_REST; ++k, length /= 2) {
        if (have && length < least) break;
        if (!euler(s, length, trial)) continue;
        const int energy = judged({trial}, false);
        const bool through = tunnels(s, trial);
        if (!energy && !through) return taken_by_euler(trial, out);
        if (energy < 0 && !through) losing = trial, loses = true;
        e = trial, have = true;
    }
    return have && taken_by_euler(loses ? losing : e, out); // (rather a loss than a gain)
}

// All that is left in the end-of-step form, where that loses nothing but motions too slow to matter, in a crowd no more
// than the guard allows: bodies that come to rest, or slide, on faces over which their contacts run faster than steps
// can follow.
bool Island::settles(const State &s, double left, std::vector<Solve> &out) {
    Solve e;
    return euler(s, left, e) && !judged({e}, false, members.size() <= FEW_BODIES) && !tunnels(s, e) && taken_by_euler(e, out);
}

// Whether a part in the end-of-step form takes a pair that does not touch at its end through itself.
bool Island::tunnels(const State &s, const Solve &e) {
    Points start, end, held;
    if (!points(s, e.h, start) || !points(e.end, 0.0, end)) return true;
    for (const ContactRecord &c : e.contacts) held.emplace_back(), held.back().pair = c.pair;
    int through;
    Apart inside;
    return passes(s, e, held, start, end, e.h, e.end, through, inside);
}

bool Island::taken_by_euler(const Solve &e, std::vector<Solve> &out) {
    spend({e});
    out.push_back(e);
    used_euler = true;
    // closed contacts may approach at its end
    Points end;
    if (!points(e.end, 0.0, end)) return false;
    if (std::none_of(end.begin(), end.end(), [](const TouchingPoint &p) { return p.striking(); })) return true;
    Solve jump;
    if (!impact(e.end, end, true, jump)) return false;
    jump.end.time = e.end.time;
    out.push_back(jump);
    return true;
}

// The contacts of a flight that is not cut where they close: what rests, and what may close within a time.
std::vector<TouchingPoint> Island::within_reach(const Points &start, double time) const {
    Points out;
    for (const TouchingPoint &p : start) {
        const double pull = pulled[p.first] + pulled[p.second];
        if (p.resting() || p.gap <= AHEAD * time * (std::max(0.0, -p.velocity) + pull * time / step)) out.push_back(p);
    }
    return out;
}

// One flight, at most `left`, that is not cut where contacts close: they have the law of impacts at its end, with
// impulses of both of its stages. False where none is found.
bool Island::uncut(const State &s, double left, const Points &start, std::vector<Solve> &out) {
    Points end, old = within_reach(start, left);
    Solve f;
    for (double length = left; length >= SHORTEST_UNCUT * step; length /= 2) {
        bool ok = false;
        for (int k = 0; k < MORE_CONTACTS; ++k) {
            ok = flight(s, length, start, old, nullptr, f, end);
            if (!ok) break;
            const std::size_t count = old.size();
            for (const TouchingPoint &p : end) {
                if (p.gap >= -DEEPEST * p.size - FAR * la::length(s.body[p.second].x)) continue;
                const auto is = [&](const TouchingPoint &q) { return q.pair == p.pair && q.tag == p.tag; };
                const auto from = std::find_if(start.begin(), start.end(), is);
                if (from != start.end() && std::none_of(old.begin(), old.end(), is)) old.push_back(*from);
            }
            if (old.size() == count) break;
            std::stable_sort(old.begin(), old.end(), [](const TouchingPoint &p, const TouchingPoint &q) { return p.pair < q.pair; });
            ok = false;
        }
        int through;
        Apart inside;
        if (ok && !overlaps(end, start) && !passes(s, f, old, start, end, length, f.end, through, inside) && !judged({f}, false)) {
            used_plain = true;
            spend({f});
            out.push_back(f);
            return true;
        }
        if (!divided) divided = ok ? GAINS : ROUNDS_DIVERGE;
        used_parts = true;
        old = within_reach(start, length / 2);
    }
    return false;
}

// What an impact counts for: in a crowd once for every body, or half of that where it is known not to be passed on to
// many.
int Island::cost(const Points &start) const {
    if (members.size() <= FEW_BODIES) return 1;
    std::vector<std::array<int, 2>> joined;
    for (const TouchingPoint &p : start)
        if (p.closed()) joined.push_back({p.first, p.second});
    const std::vector<int> label = connected(joined);
    std::vector<char> hit(scene.bodies, 0);
    if (std::none_of(start.begin(), start.end(), [](const TouchingPoint &p) { return p.striking(); })) return int(members.size());
    for (const TouchingPoint &p : start)
        if (p.striking())
            for (int b : {p.first, p.second})
                if (mask[b]) hit[label[b]] = 1;
    const auto count = std::count_if(members.begin(), members.end(), [&](int b) { return hit[label[b]]; });
    return int(members.size()) / (std::size_t(count) > FEW_BODIES ? 1 : 2);
}

bool Island::advance(const State &s, double h, std::vector<Solve> &out, std::string &why) {
    State here = s;
    begun = s.time;
    double left = h;
    int struck = 0;
    double hurdle = 0, low = 0; // s: how far the end-of-step form went, and had to, where flights were refused last
    std::size_t counted = out.size(); // solves whose time is taken off
    while (left > 1e-13 * h) {
        Points start;
        if (!points(here, left, start)) {
            why = "closest points were not found";
            return false;
        }
        bool strikes = false;
        for (const TouchingPoint &p : start) {
            strikes |= p.striking();
            if (p.undirected && p.closed()) {
                why = UNDIRECTED;
                return false;
            }
        }
        const int next = cost(start); // (of the impact, or of one at the end of the next flight)
        const bool many = struck + next > scene.max_impacts || flights > MOST_FLIGHTS;
        if (strikes && !many) {
            Solve jump;
            if (!impact(here, start, false, jump)) {
                why = "no impulses of an impact were found";
                return false;
            }
            jump.end.time = here.time;
            struck += next;
            here = jump.end;
            out.push_back(jump);
            continue;
        }
        if (many && !divided) divided = MANY_IMPACTS;
        if (!(many ? uncut(here, left, start, out) : part(here, left, start, out))) {
            hurdle = std::min(left, std::max(2 * hurdle, finest * step));
            low = std::max(GROWS * low, SHORTEST_REST * finest * step);
            if (!rest(here, hurdle, low, out) && !rest(here, left, left, out)) {
                why = "no motion was found in the end-of-step form";
                return false;
            }
            hurdle = out[counted].h;
        } else {
            hurdle = low = 0;
        }
        here = out.back().end;
        for (; counted < out.size(); ++counted) left -= out[counted].h;
    }
    return true;
}

} // namespace engine
