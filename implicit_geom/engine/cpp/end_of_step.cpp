// A part of a step with everything at its end, by rounds of contact problems [C07, eqs. 4, 10, 11]:
//
//   M+ nu+ = M nu + h F + W(q+) p,   q+ = q (+) h nu+
//   0 <= p_n _|_ d(q+) >= 0,   friction of p against W_t(q+)^T nu+
#include "anderson.hpp"
#include "island.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>

namespace engine {

namespace {
constexpr int ROUNDS = 80;
constexpr int ROUGHLY = 6;       // rounds that leave an error: later ones would follow it, such as a disc's lowest point its tilt
constexpr double CLOSE = 3e-13;  // change of the velocities in a round, over the speeds at hand
constexpr double ENOUGH = 3e-10; // where rounding allows no less
constexpr double SHIFT = 1e-12;  // of the point at which friction acts, over the body's size
constexpr double SHORTEST = 1e-4; // of a step
constexpr double SMALL = 1.0 / 16; // of a step: parts in which no problem is given up
} // namespace

// As a flight: with one friction a patch, or one for each of its points.
bool Island::euler(const State &s, double h, Solve &out) {
    Points near;
    if (!points(s, h, near)) return false;
    split = pairs_in_company(near);
    if (euler_so(s, h, out)) return true;
    split.assign(scene.pairs.size(), 1);
    return euler_so(s, h, out);
}

bool Island::advance_by_euler(const State &s, double h, std::vector<Solve> &out, std::string &why) {
    State here = s;
    begun = s.time, used_euler = true;
    double left = h, length = h;
    while (left > 1e-13 * h) {
        Solve e;
        length = std::min(left, 2 * length);
        // (what gains energy has gone through a body, or pushes it from behind)
        while (!euler(here, length, e) || tunnels(here, e) || judged({e}, false) > 0) {
            divided = ROUNDS_DIVERGE, used_parts = true;
            length /= 2;
            if (length < SMALL * h) failures = 0; // (it takes all the time it needs)
            if (length < SHORTEST * h) {
                why = "no motion was found in the end-of-step form";
                return false;
            }
        }
        Points end;
        if (!points(e.end, 0.0, end)) {
            why = "closest points were not found";
            return false;
        }
        if (std::any_of(end.begin(), end.end(), [](const TouchingPoint &p) { return p.undirected && p.closed(); })) {
            why = UNDIRECTED;
            return false;
        }
        out.push_back(e);
        here = e.end, left -= length;
    }
    return true;
}

bool Island::euler_so(const State &s, double h, Solve &out) {
    const int n = int(members.size()), dim = scene.dim;
    const double speed = speed_of(s, h);
    std::vector<double> nu(6 * std::size_t(scene.bodies), 0.0);
    for (int b = 0; b < scene.bodies; ++b)
        for (int i = 0; i < 3; ++i) nu[6 * b + i] = s.body[b].v[i], nu[6 * b + 3 + i] = s.body[b].w[i];
    load_velocities(s, h, nu.data());
    out = Solve();
    out.form = EULER_STEP, out.h = h, out.start = s, out.bodies = mask;
    contact::Problem q;
    contact::Solution found;
    Points there, last_points;
    std::vector<PatchContact> contacts, last;
    double error = INFINITY, least = INFINITY, reach = 0, law_error = INFINITY, last_error = INFINITY;
    std::vector<double> history;
    for (int b : members) reach = std::max(reach, la::length(s.body[b].x) + scene.size[b]);
    std::vector<double> x, g, nu_next;
    Anderson acceleration(4);
    bool done = false;
    for (int round = 0; round < ROUNDS && !done; ++round) {
        engine::advance(scene, s, nu.data(), h, out.end, members);
        there.clear();
        if (!points(out.end, h, there)) return false;
        there.erase(std::remove_if(there.begin(), there.end(), [&](const TouchingPoint &p) { return p.gap > 4 * h * speed; }), there.end());
        masses(out.end, q);
        contacts = patch_contacts(there, split);
        q.contacts.assign(contacts.size(), contact::Contact());
        std::vector<double> p(contact::ROWS * contacts.size(), 0.0);
        double shift = 0;
        for (std::size_t k = 0; k < contacts.size(); ++k) {
            PatchContact &pc = contacts[k];
            contact::Contact &c = q.contacts[k];
            const TouchingPoint *first = &there[std::size_t(pc.first_point)];
            double *own = &p[contact::ROWS * k], world[4];
            // impulses and the point of friction, as the last round left them
            for (std::size_t i = 0; i < last.size(); ++i)
                for (int j = 0; j < last[i].points; ++j) {
                    const TouchingPoint &was = last_points[std::size_t(last[i].first_point + j)];
                    for (int e = 0; e < pc.points; ++e)
                        if (was.pair == first[e].pair && was.tag == first[e].tag) {
                            own[e] = found.p[contact::ROWS * i + j];
                            friction_in_world(was, last[i].rows, &found.p[contact::ROWS * i + std::size_t(last[i].points)], world);
                            pc.rows = last[i].rows;
                            friction_of_rows(first[e], pc.rows, world, own + pc.points);
                        }
                }
            balance(there, pc, own);
            contact_rows(scene, out.end, first, pc.points, pc.at, index, true, c, pc.rows);
            for (int i = 0; i < pc.points; ++i) {
                double u[4];
                relative_velocity(out.end, first[i], first[i].point, u);
                c.w[i] = first[i].gap / h - u[0];
            }
        }
        for (int j = 0; j < n; ++j) {
            const int b = members[j];
            double *free = &q.v_free[std::size_t(j) * q.dof];
            const double *load = &scene.load[6 * std::size_t(b)];
            for (int i = 0; i < dim; ++i) free[i] = s.body[b].v[i] + h * load[i] / scene.mass[b];
            double J_W[9], inverse[9], momentum[3];
            world_inertia(scene, s.body[b], b, J_W);
            la::times(J_W, s.body[b].w, momentum);
            for (int i = 0; i < 3; ++i) momentum[i] += h * load[3 + i];
            world_inertia(scene, out.end.body[b], b, J_W);
            la::inverse(J_W, inverse);
            la::times(inverse, momentum, momentum);
            if (dim == 2) free[2] = momentum[2];
            else la::copy(momentum, free + 3);
        }
        found.p = p;
        if (round == 0) warm_start(there, contacts, h, found);
        const bool crowded = contacts.size() > FEW;
        const double close = crowded ? CROWDED : CLOSE;
        const bool solved = contact::solve(q, close / 3 * speed, SOLVED_TO * speed, found, crowded && round < ROUGHLY ? ROUGH : 0.0,
                                           failures < PATIENT, NEARLY * speed);
        tally(found);
        if (!solved && !(found.error <= LAW * speed) && !(round > 0 && found.error < PROGRESS * law_error)) {
            ++failures;
            return false;
        }
        last_error = law_error, law_error = found.error;
        for (std::size_t k = 0; k < contacts.size(); ++k) {
            PatchContact moved = contacts[k];
            const double away = balance(there, moved, &found.p[contact::ROWS * k]);
            if (moved.rows.count) shift = std::max(shift, away / there[std::size_t(moved.first_point)].size);
        }
        last = contacts, last_points = there;
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
        change /= speed;
        const double rounding = 3e-16 * reach / (h * speed); // of gaps over the step
        history.push_back(change);
        if (history.size() > 3) least = std::min(least, history[history.size() - 4]);
        done = change <= close || (change < ENOUGH + rounding && change > least / 2);
        done &= found.error <= LAW * speed && (found.error <= SOLVED_TO * speed || found.error > PROGRESS * last_error);
        done &= shift <= SHIFT || (shift < ENOUGH && change < ENOUGH + rounding);
        if (done || change > 0.1) nu_next = g;
        else acceleration.next(x, g, nu_next);
        for (int j = 0, k = 0; j < n; ++j)
            for (int i = 0; i < q.dof; ++i, ++k) {
                const int b = members[j];
                double &own = nu[6 * std::size_t(b) + (dim == 2 && i == 2 ? 5 : i)];
                const double next = nu_next[k] / (i < dim ? 1.0 : scene.size[b]);
                own = done || round < 12 ? next : own + (round % 2 ? 0.7 : 0.3) * (next - own);
            }
        for (int b : members)
            if (!(h * la::length(&nu[6 * std::size_t(b) + 3]) <= 3)) return false;
        error = change;
        out.iterations = round + 1;
    }
    if (!done) return false;
    engine::advance(scene, s, nu.data(), h, out.end, members);
    Points begin;
    if (!points(s, 0.0, begin)) return false;
    for (std::size_t k = 0; k < contacts.size(); ++k) {
        const PatchContact &c = contacts[k];
        const double *p = &found.p[contact::ROWS * k], *u = &found.u[contact::ROWS * k];
        const TouchingPoint &first = there[std::size_t(c.first_point)];
        double sum = 0, low = INFINITY;
        if (!c.rows.count) balance(there, contacts[k], p);
        for (int i = 0; i < c.points; ++i) sum += p[i], low = std::min(low, there[std::size_t(c.first_point + i)].gap);
        if (sum == 0 && low > TOUCH * first.size) continue;
        ContactRecord made = record(first, EULER, c.rows, p + c.points, u + c.points);
        made.p_n = sum, made.gap = low;
        // (what was open, or approached, is struck: its losses are those of an impact)
        made.impact = std::none_of(begin.begin(), begin.end(), [&](const TouchingPoint &b) { return b.pair == first.pair && b.resting(); });
        la::copy(c.at, made.point), la::copy(c.at, made.end_point);
        out.contacts.push_back(made);
    }
    if (scene.euler) remember(there, contacts, found, h);
    out.half = nu;
    out.residual = std::max(error, found.error / speed);
    return true;
}

} // namespace engine
