// What energy a flight may create: of each island of closed contacts, in its own frame.
//
//   created   change - work + friction's loss
//   at hand   turning, falling by at most a body's size, and 1/2 sum m |v - V|^2 + 1/2 M s^2: V the velocity of the
//             island's centre of mass, s its speed towards the fixed planes that it touches; along a fixed surface
//             that is curved, all of V
#include "island.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

namespace engine {

namespace {

constexpr double AT_ONCE = 0.125; // of what is left of a step's share, that one part may take
constexpr double SLOW = 1e-2;     // of what loads add to the speed in a step: energies of slower motions are no loss
constexpr double BRIEF = 0.1;     // the same, where a step that flights cannot follow may be taken in one
constexpr double LOSS = 10;       // what may be lost, over what may be created
constexpr double SLIDES = 1e-9;   // slip, over the speeds at hand, above which friction's work is a loss
constexpr double CHANGES = 1e-8;  // the same, above which a contact slides
constexpr double ROUNDING = 1e-12;
constexpr double STILL = 1e-9;    // of a body's size: to move by less in a step counts as rest

double turning(const Scene &scene, const BodyState &s, int b) {
    double w[3], Jw[3];
    if (scene.dim == 2) la::copy(s.w, w);
    else la::transposed_times(s.R, s.w, w);
    la::times(&scene.J[9 * std::size_t(b)], w, Jw);
    return la::dot(w, Jw) / 2;
}

} // namespace

// Energy created in a solve, J, by island; `struck`: what its impacts lost, and gravity's share of them, as in the
// ledger.
void Island::made(const Solve &f, const std::vector<int> &label, std::vector<double> &out, std::vector<double> &struck) const {
    const double h = f.h;
    const bool euler = f.form == EULER_STEP;
    const double share[2] = {euler ? h : h / 2, euler ? 0.0 : h / 2}; // over which loads act in the two kicks
    std::vector<double> mean[2] = {std::vector<double>(6 * std::size_t(scene.bodies)), std::vector<double>(6 * std::size_t(scene.bodies))};
    for (int b = 0; b < scene.bodies; ++b) {
        const BodyState &start = f.start.body[b], &end = f.end.body[b];
        double spin[2][3] = {{start.w[0], start.w[1], start.w[2]}, {end.w[0], end.w[1], end.w[2]}};
        if (mask[b]) {
            const double *w = &f.half[6 * std::size_t(b) + 3];
            for (int k = 0; k < 2; ++k) {
                if (scene.dim == 2 || euler) {
                    la::copy(w, spin[k]);
                    continue;
                }
                const double turn = k ? -h : h, theta[3] = {turn * w[0], turn * w[1], turn * w[2]};
                double D[9], J_W[9], inverse[9], momentum[3];
                tangent_inverse(theta, D);
                world_inertia(scene, k ? end : start, b, J_W);
                la::inverse(J_W, inverse);
                la::times(J_W, w, momentum);
                la::transposed_times(D, momentum, momentum);
                la::times(inverse, momentum, spin[k]);
            }
        }
        for (int i = 0; i < 3; ++i) {
            const double v = f.half[6 * std::size_t(b) + i];
            mean[0][6 * b + i] = (start.v[i] + v) / 2, mean[1][6 * b + i] = (v + end.v[i]) / 2;
            mean[0][6 * b + 3 + i] = (start.w[i] + spin[0][i]) / 2, mean[1][6 * b + 3 + i] = (spin[1][i] + end.w[i]) / 2;
        }
        if (!mask[b]) continue;
        double change = turning(scene, end, b) - turning(scene, start, b);
        double faster[3], moved[3];
        for (int i = 0; i < 3; ++i) faster[i] = end.v[i] + start.v[i], moved[i] = end.x[i] - start.x[i];
        for (int i = 0; i < 3; ++i) change += scene.mass[b] / 2 * faster[i] * (end.v[i] - start.v[i]);
        change -= scene.mass[b] * la::dot(moved, scene.gravity);
        for (int k = 0; k < 2; ++k)
            for (int i = 0; i < 6; ++i) {
                const double weight = i < 3 ? scene.mass[b] * scene.gravity[i] : 0.0;
                change -= share[k] * (scene.load[6 * std::size_t(b) + i] - weight) * mean[k][6 * b + i];
            }
        out[label[b]] += change;
    }
    // friction's loss in a pair: of its impulses in both stages, else that of the friction law
    struct Loss {
        int pair, body;
        double work, law;
    };
    std::vector<Loss> losses;
    const double speed = speed_of(f.start, h), sense = h < 0 ? -1 : 1; // (backwards, impulses have the other sign)
    std::vector<char> hit(scene.bodies, 0);
    for (const ContactRecord &c : f.contacts) {
        const bool slides = la::length(c.slip) > SLIDES * speed;
        if (!slides && !c.slid && !c.impact) continue;
        const int k = c.stage == VELOCITY;
        const State &pose = c.stage == POSITION ? f.start : f.end;
        const Pair &pair = scene.pairs[c.pair];
        const int bodies[2] = {pair.body[pair.swapped], pair.body[1 - pair.swapped]};
        double u[3] = {0, 0, 0}, spin = 0;
        for (int side = 0; side < 2; ++side) {
            const double *nu = &mean[k][6 * std::size_t(bodies[side])], sign = side ? 1 : -1;
            double arm[3], turn[3];
            la::subtract(c.point, pose.body[bodies[side]].x, arm);
            la::cross(nu + 3, arm, turn);
            for (int i = 0; i < 3; ++i) u[i] += sign * (nu[i] + turn[i]);
            spin += sign * la::dot(c.n, nu + 3);
        }
        const double tangential = c.p_f[0] * la::dot(c.t, u) + c.p_f[1] * la::dot(c.o, u) + c.p_f[2] * spin;
        if (c.impact) {
            struck[label[bodies[mask[bodies[0]] ? 0 : 1]]] -= c.p_n * la::dot(c.n, u) + tangential;
            for (int b : bodies) hit[b] = mask[b];
            continue;
        }
        auto own = std::find_if(losses.begin(), losses.end(), [&](const Loss &l) { return l.pair == c.pair; });
        if (own == losses.end()) own = losses.insert(own, {c.pair, bodies[mask[bodies[0]] ? 0 : 1], 0.0, 0.0});
        own->work -= sense * tangential;
        if (slides) own->law += std::max(0.0, -sense * la::dot(c.p_f, c.slip));
    }
    for (const Loss &l : losses) out[label[l.body]] += sense * (l.work >= 0 ? l.work : l.law);
    for (int b : members)
        if (hit[b])
            for (int i = 0; i < 3; ++i) {
                const double way = share[0] * mean[0][6 * b + i] + share[1] * mean[1][6 * b + i] - (f.end.body[b].x[i] - f.start.body[b].x[i]);
                struck[label[b]] -= scene.mass[b] * scene.gravity[i] * way;
            }
}

double Island::at_hand(const State &s, const Solve &f, const std::vector<int> &label, int which) const {
    const double strength = la::length(scene.gravity);
    double mass = 0, V[3] = {0, 0, 0}, energy = 0;
    for (int b : members) {
        if (label[b] != which) continue;
        mass += scene.mass[b];
        for (int i = 0; i < 3; ++i) V[i] += scene.mass[b] * s.body[b].v[i];
    }
    for (double &v : V) v /= mass;
    for (int b : members) {
        if (label[b] != which) continue;
        double away[3], fall = scene.depth[b];
        la::subtract(s.body[b].v, V, away);
        if (strength > 0 && !std::isnan(scene.lowest[b]))
            fall = std::min(fall, std::max(0.0, -la::dot(s.body[b].x, scene.gravity) / strength - scene.lowest[b]));
        energy += turning(scene, s.body[b], b) + scene.mass[b] * (strength * fall + la::dot(away, away) / 2);
    }
    double fastest = 0;
    for (const ContactRecord &c : f.contacts) {
        const Pair &pair = scene.pairs[c.pair];
        for (int side = 0; side < 2; ++side) {
            const int b = pair.body[side], other = pair.body[1 - side];
            if (!mask[b] || label[b] != which || scene.moves[other]) continue;
            const int kind = scene.pieces[pair.piece[1 - side]].shape.kind;
            const double towards = la::dot(V, c.n);
            const bool flat = kind == geometry::HALFSPACE || kind == geometry::POLYTOPE;
            fastest = std::max(fastest, flat ? towards * towards : la::dot(V, V));
        }
    }
    return energy + mass / 2 * fastest;
}

// Labels of bodies, the same where moving bodies are connected: one of them.
std::vector<int> Island::connected(const std::vector<std::array<int, 2>> &joined) const {
    std::vector<int> label(scene.bodies);
    std::iota(label.begin(), label.end(), 0);
    const auto root = [&](int b) {
        while (label[b] != b) b = label[b] = label[label[b]];
        return b;
    };
    for (const auto &[one, two] : joined) {
        if (!scene.moves[one] || !scene.moves[two]) continue;
        const int a = root(one), b = root(two);
        if (a != b) label[std::max(a, b)] = std::min(a, b);
    }
    for (int b = 0; b < scene.bodies; ++b) label[b] = root(b);
    return label;
}

std::vector<int> Island::islands_of_contacts(const std::vector<Solve> &flown) const {
    std::vector<std::array<int, 2>> joined;
    for (const Solve &f : flown)
        for (const ContactRecord &c : f.contacts) joined.push_back({scene.pairs[c.pair].body[0], scene.pairs[c.pair].body[1]});
    return connected(joined);
}

// 1 where an island creates more energy than it may, what impacts lost included, -1 where it loses more, else 0. In a
// whole step in which contacts keep their modes it may lose no more than it may create: what it loses in one phase of a
// motion it gains in another.
// A part of a step has its share by time, or some of what the parts before it left: in short times contacts may push
// hard. Motions too slow to matter may be lost at any rate; with `only_slow` they alone, and those whose flights are
// much shorter than a step, up to the guard's share of what the bodies could fall.
int Island::judged(const std::vector<Solve> &flown, bool whole, bool only_slow) const {
    const std::vector<int> label = islands_of_contacts(flown);
    std::vector<double> created(scene.bodies, 0.0), struck(scene.bodies, 0.0);
    for (const Solve &f : flown) made(f, label, created, struck);
    std::vector<char> changes(scene.bodies, !whole || flown.size() > 1);
    if (whole && flown.size() == 1) {
        const double speed = speed_of(flown[0].start, flown[0].h);
        std::set<std::array<int, 3>> modes[2];
        for (const ContactRecord &c : flown[0].contacts) {
            const bool slides = la::length(c.slip) > CHANGES * speed;
            modes[c.stage == VELOCITY].insert({c.pair, c.tag, slides});
            const Pair &pair = scene.pairs[c.pair];
            if (c.stage == POSITION && slides != bool(c.lagged))
                for (int b : pair.body)
                    if (mask[b]) changes[label[b]] = 1;
        }
        for (int k = 0; k < 2; ++k)
            for (const auto &mode : modes[k])
                if (!modes[1 - k].count(mode))
                    for (int b : scene.pairs[mode[0]].body)
                        if (mask[b]) changes[label[b]] = 1;
    }
    double time = 0;
    for (const Solve &f : flown) time += f.h;
    const double share = time / step, gone = (flown.back().end.time - begun) / step;
    for (int b : members) {
        if (label[b] != b) continue;
        double hand = 0, rounding = 0, so_far = 0, slow = 0, fall = 0;
        for (int end = 0; end < 2; ++end)
            hand = std::max(hand, at_hand(end ? flown.back().end : flown[0].start, end ? flown.back() : flown[0], label, b));
        for (int i : members) {
            if (label[i] != b) continue;
            const BodyState &s = flown[0].start.body[i];
            const double kinetic = scene.mass[i] / 2 * la::dot(s.v, s.v) + turning(scene, s, i);
            rounding += (ROUNDING + scene.tolerance * share) * (kinetic + scene.mass[i] * la::length(scene.gravity) * scene.depth[i]);
            rounding += scene.mass[i] * std::pow(STILL * scene.depth[i] / step, 2);
            so_far += spent[i];
            slow += scene.mass[i] / 2 * std::pow(SLOW * pulled[i], 2);
            fall += scene.mass[i] * la::length(scene.gravity) * scene.depth[i];
        }
        const auto allowed = [&](double most, double used) {
            used = std::max(used, 0.0);
            const double even = most * gone - used, room = most * (1 + gone) / 2 - used;
            return rounding + std::max({even, AT_ONCE * room, 0.0});
        };
        const double most = scene.guard * hand;
        if (created[b] + std::max(struck[b], 0.0) > allowed(most, so_far)) return 1;
        const double lost = -created[b] - struck[b];
        const double brief = std::max(slow, std::min(slow * std::pow(BRIEF / SLOW, 2), scene.guard * fall));
        if (lost > slow && (only_slow ? lost > brief : lost > allowed(changes[b] ? LOSS * most : most, -so_far))) return -1;
    }
    return 0;
}

void Island::spend(const std::vector<Solve> &flown) {
    const std::vector<int> label = islands_of_contacts(flown);
    for (const Solve &f : flown) made(f, label, spent, spent);
}

} // namespace engine
