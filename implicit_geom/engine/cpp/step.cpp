#include "step.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace engine {

namespace {

constexpr double MARGIN = 1.2;  // times the way that bodies would go at their speeds
constexpr double AROUND = 0.02; // of the smaller body's size
constexpr int WIDENINGS = 6;

// Distance of the balls that hold the pieces of a pair, m.
double ball_gap(const Scene &scene, const Pair &pair, const std::vector<double> &centre) {
    const Piece &a = scene.pieces[pair.piece[0]], &b = scene.pieces[pair.piece[1]];
    const double *ca = &centre[3 * std::size_t(pair.piece[0])], *cb = &centre[3 * std::size_t(pair.piece[1])];
    if (b.radius < 0) return -1;
    if (a.radius >= 0) {
        double d[3];
        la::subtract(cb, ca, d);
        return la::length(d) - a.radius - b.radius;
    }
    return -1;
}

// Distance of a pair, or what its balls have where that is not found here.
double true_gap(const Scene &scene, const State &s, int number) {
    const Pair &pair = scene.pairs[number];
    for (int piece : pair.piece)
        if (scene.pieces[piece].shape.kind == geometry::FOREIGN) return -1;
    const std::vector<double> none(scene.bodies, 0.0);
    std::vector<TouchingPoint> points;
    if (!touching_points(scene, s, number, none.data(), points)) return -1;
    double gap = INFINITY;
    for (const TouchingPoint &p : points) gap = std::min(gap, p.gap);
    return points.empty() ? -1 : gap;
}

void number_features(Solve &f) {
    for (std::size_t k = 0; k < f.contacts.size(); ++k) {
        ContactRecord &c = f.contacts[k];
        c.feature = 0;
        for (std::size_t j = k; j-- > 0;)
            if (f.contacts[j].pair == c.pair && f.contacts[j].stage == c.stage) {
                c.feature = f.contacts[j].feature + 1;
                break;
            }
    }
}

// The solves of islands, which all start at s: as one those of islands that took the step in one of the same form, the
// others one after another.
void together(const Scene &scene, const State &s, std::vector<std::vector<Solve>> &islands, std::vector<Solve> &out) {
    for (auto &solves : islands)
        for (Solve &f : solves) number_features(f);
    if (islands.size() == 1) {
        out = std::move(islands[0]);
        for (Solve &f : out) std::fill(f.bodies.begin(), f.bodies.end(), 1);
        return;
    }
    const std::vector<Solve> *first = nullptr;
    for (const auto &solves : islands)
        if (!first && solves.size() == 1) first = &solves;
    const auto joins = [&](const auto &solves) { return first && solves.size() == 1 && solves[0].form == (*first)[0].form; };
    State here = s;
    std::size_t joined = 0;
    for (auto &solves : islands) {
        if (!joins(solves)) continue;
        Solve &f = solves[0];
        here.time = f.end.time;
        for (int b = 0, k = 0; b < scene.bodies; ++b) {
            if (f.bodies[b]) here.body[b] = f.moved[k++];
            else if (scene.moves[b]) std::fill(&f.half[6 * std::size_t(b)], &f.half[6 * std::size_t(b)] + 6, 0.0);
        }
        if (joined++ == 0) {
            out.push_back(std::move(f));
            continue;
        }
        Solve &whole = out[0];
        whole.contacts.insert(whole.contacts.end(), f.contacts.begin(), f.contacts.end());
        for (std::size_t i = 0; i < whole.half.size(); ++i) whole.half[i] += f.half[i];
        for (int b = 0; b < scene.bodies; ++b) whole.bodies[b] |= f.bodies[b];
        whole.iterations = std::max(whole.iterations, f.iterations);
        whole.residual = std::max(whole.residual, f.residual);
        whole.overlap = std::max(whole.overlap, f.overlap);
    }
    if (joined) out[0].start = s, out[0].start.time = here.time - out[0].h, out[0].end = here;
    if (joined == islands.size()) {
        std::fill(out[0].bodies.begin(), out[0].bodies.end(), 1);
        return;
    }
    for (auto &solves : islands) {
        if (joins(solves)) continue;
        for (Solve &f : solves) {
            const double time = f.end.time;
            f.start = here, f.start.time = time - f.h;
            f.end = here, f.end.time = time;
            for (int b = 0, k = 0; b < scene.bodies; ++b) {
                if (f.bodies[b]) f.end.body[b] = f.moved[k++];
                else if (scene.moves[b]) std::fill(&f.half[6 * std::size_t(b)], &f.half[6 * std::size_t(b)] + 6, 0.0);
            }
            here = f.end;
            out.push_back(std::move(f));
        }
    }
}

} // namespace

void take_step(const Scene &scene, const State &s, double h, std::vector<Pressed> &pressed, Outcome &out) {
    const int B = scene.bodies;
    std::vector<double> travel(B, 0.0), centre(3 * scene.pieces.size());
    std::vector<double> plane(4 * scene.pieces.size()); // world normal and offset of half-spaces
    for (int b = 0; b < B; ++b)
        if (scene.moves[b])
            travel[b] = h * (la::length(s.body[b].v) + scene.size[b] * la::length(s.body[b].w) +
                             h * la::length(&scene.load[6 * std::size_t(b)]) / scene.mass[b]);
    for (std::size_t i = 0; i < scene.pieces.size(); ++i) {
        const Piece &p = scene.pieces[i];
        const BodyState &b = s.body[p.body];
        la::times(b.R, p.centre, &centre[3 * i]);
        for (int k = 0; k < 3; ++k) centre[3 * i + k] += b.x[k];
        if (p.shape.kind == geometry::HALFSPACE) {
            double own[3], at[3];
            la::times(p.R, p.shape.par, own);
            la::times(b.R, own, &plane[4 * i]);
            la::times(b.R, p.x, at);
            for (int k = 0; k < 3; ++k) at[k] += b.x[k];
            plane[4 * i + 3] = p.shape.par[3] + la::dot(&plane[4 * i], at);
        }
    }
    std::vector<double> gap(scene.pairs.size());
    for (std::size_t i = 0; i < scene.pairs.size(); ++i) {
        const Pair &p = scene.pairs[i];
        const std::size_t a = std::size_t(p.piece[0]), b = std::size_t(p.piece[1]);
        if (scene.pieces[a].shape.kind == geometry::HALFSPACE && scene.pieces[b].radius >= 0)
            gap[i] = la::dot(&plane[4 * a], &centre[3 * b]) - plane[4 * a + 3] - scene.pieces[b].radius;
        else gap[i] = ball_gap(scene, p, centre);
    }
    std::vector<Pressed> now;
    std::vector<char> known(scene.pairs.size(), 0);
    for (int round = 0; round < WIDENINGS; ++round) {
        out = Outcome();
        now.clear();
        std::vector<std::vector<Solve>> islands;
        std::vector<char> candidate(scene.pairs.size(), 0);
        std::vector<int> label(B);
        std::iota(label.begin(), label.end(), 0);
        const auto root = [&](int b) {
            while (label[b] != b) b = label[b] = label[label[b]];
            return b;
        };
        for (std::size_t i = 0; i < scene.pairs.size(); ++i) {
            const Pair &p = scene.pairs[i];
            const double reach = MARGIN * (travel[p.body[0]] + travel[p.body[1]]) + AROUND * p.size;
            if (gap[i] > reach) continue;
            const bool both = scene.moves[p.body[0]] && scene.moves[p.body[1]];
            if (both && !known[i]) gap[i] = std::max(gap[i], true_gap(scene, s, int(i))), known[i] = 1;
            if (gap[i] > reach) continue;
            candidate[i] = 1;
            if (both) {
                const int a = root(p.body[0]), b = root(p.body[1]);
                if (a != b) label[std::max(a, b)] = std::min(a, b);
            }
        }
        std::vector<std::vector<int>> members, pairs;
        std::vector<int> island(B, -1);
        for (int b = 0; b < B; ++b) {
            if (!scene.moves[b]) continue;
            const int r = root(b);
            if (island[r] < 0) island[r] = int(members.size()), members.emplace_back(), pairs.emplace_back();
            island[b] = island[r];
            members[island[b]].push_back(b);
        }
        for (std::size_t i = 0; i < scene.pairs.size(); ++i)
            if (candidate[i]) {
                const Pair &p = scene.pairs[i];
                pairs[island[scene.moves[p.body[0]] ? p.body[0] : p.body[1]]].push_back(int(i));
            }
        for (std::size_t k = 0; k < members.size(); ++k) {
            Island own(scene, members[k], pairs[k], h);
            for (const Pressed &p : pressed)
                if (std::binary_search(pairs[k].begin(), pairs[k].end(), p.pair)) own.pressed.push_back(p);
            islands.emplace_back();
            const bool solved = scene.euler ? own.advance_by_euler(s, h, islands.back(), out.reason)
                                            : own.advance(s, h, islands.back(), out.reason);
            out.flights += own.flights, out.rounds += own.rounds, out.factorisations += own.factorisations;
            if (!solved) return;
            for (std::size_t i = 0; members.size() > 1 && i < islands.back().size(); ++i) {
                Solve &f = islands.back()[i];
                for (int b = 0; b < B; ++b)
                    if (f.bodies[b]) f.moved.push_back(f.end.body[b]);
                std::vector<BodyState>().swap(f.start.body), std::vector<BodyState>().swap(f.end.body);
            }
            now.insert(now.end(), own.pressed.begin(), own.pressed.end());
            out.reason.clear();
            out.used_euler |= own.used_euler, out.used_parts |= own.used_parts;
            out.used_plain |= own.used_plain;
            if (!out.divided) out.divided = own.divided;
        }
        // pairs that the motion may have brought together after all
        std::vector<double> way(B, 0.0);
        for (const auto &solves : islands)
            for (const Solve &f : solves)
                for (int b = 0; b < B; ++b)
                    if (f.bodies[b] && f.h != 0)
                        way[b] += std::fabs(f.h) * (la::length(&f.half[6 * std::size_t(b)]) +
                                                    scene.size[b] * la::length(&f.half[6 * std::size_t(b) + 3]));
        bool missed = false;
        for (std::size_t i = 0; i < scene.pairs.size() && !missed; ++i)
            missed = !candidate[i] && gap[i] < way[scene.pairs[i].body[0]] + way[scene.pairs[i].body[1]];
        if (!missed) {
            pressed = std::move(now);
            together(scene, s, islands, out.solves);
            return;
        }
        for (int b = 0; b < B; ++b) travel[b] = std::max(1.5 * travel[b], 1.5 * way[b]);
    }
    out.reason = "pairs that come into reach are not found";
}

} // namespace engine
