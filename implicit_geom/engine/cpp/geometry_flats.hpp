// The flat part of a body that faces a direction, and what two of them share.
#pragma once
#include "geometry_support.hpp"

namespace geometry {

constexpr int CORNERS = 64; // of a face
constexpr int FOUND = 160;  // points before those that are the same are left out
constexpr double SAME = 1e-7;    // distance of points, and difference of gaps, over the smaller body's size
constexpr double EXACT = 1e-11;  // by which a patch's least gap may exceed the closest points', over the same
constexpr double TOUCHING = 1e-9; // overlap over the same: a local maximum of the separation is the largest

enum FlatKind { CORNER_POINTS, RIM_POINTS, LINE_ENDS, ONE_POINT };

// Extreme points in order, world axes; a rim has marks first, then any that moves.
//
// id: number of the vertex, mark (RIM: the moving one) or end.
struct Flat {
    int count, kind, owner, dim;
    Vec p[CORNERS];
    int id[CORNERS];
    int vertices; // of the body
    Vec n;        // the direction that it faces
    Vec normal;   // of the face, on that side
    Vec centre;
    double radius;
};

// Points with one normal, before they are made a Patch.
struct Points {
    int count;
    Vec a[FOUND], b[FOUND], own[FOUND];
    double gap[FOUND];
    int tag[FOUND], fixed[FOUND];
    Vec n;
    double least() const {
        double low = INFINITY;
        for (int k = 0; k < count; k++) low = std::fmin(low, gap[k]);
        return low;
    }
};

// One point of each body that are closest.
struct Closest {
    double gap;
    Vec a, b, n;
    int tag, fixed;
    bool sole; // whether no other direction can keep the bodies farther apart
};

// The part of a bounded body that faces d; owner: 1 or 2. False where it has too many corners.
bool flat_part(const Body &body, const Vec &d, int owner, Flat &out);

// Name of a point of a flat part, and the body that it is fixed on.
void name_of(const Flat &flat, int k, int &tag, int &fixed);

// The part of a face and what the other body has over it; false where no face is across the normal.
bool face_points(const Flat &on_a, const Flat &on_b, double size, Points &out);

// Whether a point is in the prism over a face, or out of it by no more than `slack`.
bool holds(const Flat &face, const Vec &p, double slack);

// How far inside the prism over a face a point is, m.
double margin(const Flat &face, const Vec &p);

// Two parallel lines; false where they are none, or share no more than a point.
bool line_points(const Body &a, const Body &b, const Flat &on_a, const Flat &on_b, const Vec &n, double size,
                 Points &out);

// A name for the crossing of two edges, each given by its two vertices; which: of several.
int crossing_name(int a0, int a1, int count_a, int b0, int b1, int count_b, int which);

} // namespace geometry
