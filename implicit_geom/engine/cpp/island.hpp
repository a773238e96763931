// Bodies that may touch within a step, directly or through others: stepped by themselves.
//
// A step is cut where a contact closes: a flight to that instant, the jump of the velocities there by one
// contact problem, and the rest. A flight is a step of RATTLE with the contacts that persist through it.
#pragma once
#include "patch_contacts.hpp"
#include <array>
#include <string>

namespace engine {

inline constexpr const char *UNDIRECTED = "friction.direction is parallel to the contact normal; choose one across it";
constexpr double REST = 2e-3; // of what loads add to the speed in a step: bounces slower than that are none

// What a point last pressed with, the friction of its contact, per second, and the weight of their problem: where the
// next problem starts.
struct Pressed {
    int pair, tag;
    double normal, friction[4], weight; // friction in world axes, and about the normal
};

// Rounds of contact problems, of more than a few contacts.
constexpr std::size_t FEW = 2;    // contacts, up to which each round is solved exactly
constexpr double ROUGH = 1e-2;    // error that a round leaves otherwise, over that at its start
constexpr double CROWDED = 1e-11; // change of the velocities in a round, over the speeds at hand, that ends them

constexpr int PATIENT = 3;       // hard problems of an island in a step that may take long; the step is divided instead
constexpr double NEARLY = 2e-7;  // error of a contact problem at its start, over the speeds at hand, that is not worth much time
constexpr double PROGRESS = 0.5; // error of a contact problem over that of the round before, with which rounds go on
constexpr double SOLVED_TO = 1e-10; // error of a contact problem, over the speeds at hand, that rounds go on to reach
constexpr double LAW = 3e-10;    // error of a contact problem, over the same, above which it is not solved

class Island {
  public:
    Island(const Scene &scene, std::vector<int> members, std::vector<int> pairs, double step);
    std::vector<Pressed> pressed;
    // From s over h; appends solves. False, with a reason, where no motion was found.
    bool advance(const State &s, double h, std::vector<Solve> &out, std::string &why);
    // The same with everything at the end of the step, or of its parts where no solution is found.
    bool advance_by_euler(const State &s, double h, std::vector<Solve> &out, std::string &why);

    int divided = PLAIN; // why a part was taken otherwise than in one flight
    bool used_euler = false, used_parts = false, used_plain = false; // plain: a flight not of order four
    int flights = 0, rounds = 0, factorisations = 0; // also of what was refused; rounds: of contact problems

  private:
    void tally(const contact::Solution &found);
    int failures = 0; // flights whose contact problem had no solution
    struct Watched {
        int pair;
        double gap, velocity, size;
    };
    struct Trial {
        double length = 0;
        bool known = false; // whether the gaps at its end are
        std::vector<Watched> watched;
    };
    using Points = std::vector<TouchingPoint>;

    double ball_gap(const State &s, int pair) const;
    bool points(const State &s, double reach_time, Points &out) const;
    bool points_of(const State &s, int pair, Points &out) const;
    // `slides`: of each contact, where modes are known and all of them press
    bool flight(const State &s, double h, const Points &start, const Points &old, const std::vector<char> *slides,
                Solve &out, Points &end_points);
    bool flight_so(const State &s, double h, const Points &start, const Points &old, const std::vector<char> *slides,
                   Solve &out, Points &end_points);
    std::vector<char> split; // of a pair: whether each point of its patches has friction of its own
    std::vector<char> pairs_in_company(const Points &points) const;
    bool successor(const State &end, const TouchingPoint &p, const double *material, const Points &start, const Points &there,
                   TouchingPoint &out) const;
    bool velocity_stage(double h, const Points &start, const Points &old, const std::vector<char> *slides, double speed,
                        const std::vector<PatchContact> &before, Solve &out, Points &end_points);
    bool composed(const State &s, double h, const Points &start, const Points &old, std::vector<Solve> &out, Points &end);
    bool fly(const State &s, double h, const Points &start, const Points &old, std::vector<Solve> &out, Points &end);
    bool part(const State &s, double left, const Points &start, std::vector<Solve> &out);
    bool rest(const State &s, double left, double least, std::vector<Solve> &out);
    bool settles(const State &s, double left, std::vector<Solve> &out);
    bool tunnels(const State &s, const Solve &e);
    bool taken_by_euler(const Solve &e, std::vector<Solve> &out);
    bool euler(const State &s, double h, Solve &out);
    bool euler_so(const State &s, double h, Solve &out);
    bool impact(const State &s, const Points &start, bool inelastic, Solve &out);
    bool beyond(const State &s, const std::vector<Solve> &flown, const Points &start, const Points &old, const Points &end, Trial &trial);
    struct Apart {
        double time = 0, gap = 0, velocity = 0, closing = 0, opening = 0;
        bool known = false; // whether n and the velocity of the gap are
    };
    Apart apart(const State &at, const Solve &f, const Points &points, int pair, double time) const;
    bool crossed(const State &s, const Solve &f, int pair, const Apart &from, const Apart &to, int depth, Apart &inside);
    bool passes(const State &s, const Solve &f, const Points &old, const Points &start, const Points &end, double length,
                const State &last,
                int &through, Apart &inside);
    bool uncut(const State &s, double left, const Points &start, std::vector<Solve> &out);
    int cost(const Points &start) const;
    Points within_reach(const Points &start, double time) const;
    bool overlaps(const Points &end, const Points &start) const;
    double next_length(const Trial &low, const Trial &high, double top) const;
    std::vector<int> connected(const std::vector<std::array<int, 2>> &joined) const;
    std::vector<int> islands_of_contacts(const std::vector<Solve> &flown) const;
    int judged(const std::vector<Solve> &flown, bool whole, bool only_slow = false) const;
    void spend(const std::vector<Solve> &flown);
    void made(const Solve &f, const std::vector<int> &label, std::vector<double> &out, std::vector<double> &struck) const;
    double at_hand(const State &s, const Solve &f, const std::vector<int> &label, int which) const;

    // pieces of problems
    void masses(const State &s, contact::Problem &q) const;
    void load_velocities(const State &s, double h, double *nu) const; // adds h F / m, h J^-1 tau
    double speed_of(const State &s, double h) const;
    void settle(const State &s, Solve &out) const;
    ContactRecord record(const TouchingPoint &p, int stage, const Rows &rows, const double *friction, const double *slip) const;

    void remember(const Points &points, const std::vector<PatchContact> &contacts, const contact::Solution &found, double time);
    void warm_start(const Points &points, std::vector<PatchContact> &contacts, double time, contact::Solution &found) const;
    double stride = 1e300; // s: how long a part of this step may be, as the last ones showed

    const Scene &scene;
    std::vector<int> members, pairs, index; // index: body -> place among the members, or -1
    std::vector<char> mask;
    std::vector<double> pulled; // (bodies) what loads add to the speed in the step, m/s
    double step, begun = 0;     // s: its length and start
    double finest;              // of a step: the shortest flight that is tried
    std::vector<double> spent;  // (bodies) energy that flights of the step created, J, at one body of its island
};

} // namespace engine
