// Bodies that may touch within a step, directly or through others: stepped by themselves.
//
// A step is cut where a contact closes: a flight to that instant, the jump of the velocities there by one
// contact problem, and the rest. A flight is a step of RATTLE with the contacts that persist through it.
#pragma once
#include "patch_contacts.hpp"
#include <string>

namespace engine {

class Island {
  public:
    Island(const Scene &scene, std::vector<int> members, std::vector<int> pairs, double step);
    // From s over h; appends solves. False, with a reason, where no motion was found.
    bool advance(const State &s, double h, std::vector<Solve> &out, std::string &why);

    int divided = PLAIN; // why a part was taken otherwise than in one flight
    bool used_euler = false, used_parts = false, used_plain = false; // plain: a flight not of order four
    int flights = 0;

  private:
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
    bool split = false; // whether each point of a patch has friction of its own
    bool successor(const State &end, const TouchingPoint &p, const double *material, const Points &start, const Points &there,
                   TouchingPoint &out) const;
    bool velocity_stage(double h, const Points &start, const Points &old, const std::vector<char> *slides, double speed,
                        const std::vector<PatchContact> &before, Solve &out, Points &end_points);
    bool composed(const State &s, double h, const Points &start, const Points &old, std::vector<Solve> &out, Points &end);
    bool fly(const State &s, double h, const Points &start, const Points &old, std::vector<Solve> &out, Points &end);
    bool part(const State &s, double left, const Points &start, std::vector<Solve> &out);
    bool rest(const State &s, double left, std::vector<Solve> &out);
    bool euler(const State &s, double h, Solve &out);
    bool euler_so(const State &s, double h, Solve &out);
    bool impact(const State &s, const Points &start, bool inelastic, Solve &out);
    bool beyond(const State &s, const std::vector<Solve> &flown, const Points &start, const Points &old, const Points &end, Trial &trial);
    bool crossed(const State &s, const Solve &f, int pair, double t0, double g0, double t1, double g1, int depth);
    bool overlaps(const Points &end, const Points &start) const;
    double next_length(const Trial &low, const Trial &high, double top) const;
    double excess(const std::vector<Solve> &flown, bool whole) const;
    void made(const Solve &f, const std::vector<int> &label, std::vector<double> &out) const;
    double at_hand(const State &s, const Solve &f, const std::vector<int> &label, int which) const;

    // pieces of problems
    void masses(const State &s, contact::Problem &q) const;
    void load_velocities(const State &s, double h, double *nu) const; // adds h F / m, h J^-1 tau
    double speed_of(const State &s, double h) const;
    void settle(const State &s, Solve &out) const;
    ContactRecord record(const TouchingPoint &p, int stage, const Rows &rows, const double *friction, const double *slip) const;

    // what points last pressed with, and the friction of their contact, per second: where the next problem starts
    struct Pressed {
        int pair, tag;
        double normal, friction[contact::FRICTION];
    };
    void remember(const Points &points, const std::vector<PatchContact> &contacts, const contact::Solution &found, double time);
    void warm_start(const Points &points, std::vector<PatchContact> &contacts, double time, contact::Solution &found) const;
    std::vector<Pressed> pressed;
    double weight = 0;

    const Scene &scene;
    std::vector<int> members, pairs, index; // index: body -> place among the members, or -1
    std::vector<char> mask;
    std::vector<double> pulled; // (bodies) what loads add to the speed in the step, m/s
    double step;
};

} // namespace engine
