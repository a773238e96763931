// A step of the whole scene: candidate pairs, islands of bodies, each stepped by itself.
#pragma once
#include "island.hpp"

namespace engine {

struct Outcome {
    std::vector<Solve> solves; // in order, each from where the one before it ended
    std::string reason;        // why there are none
    int divided = PLAIN;
    bool used_euler = false, used_parts = false, used_plain = false;
    int flights = 0, rounds = 0, factorisations = 0;
};

// `pressed`: of the bodies that touch others that move, in the step that ended at s, and then in this one.
void take_step(const Scene &scene, const State &s, double h, std::vector<Pressed> &pressed, Outcome &out);

} // namespace engine
