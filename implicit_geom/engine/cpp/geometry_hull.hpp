// A hull of support points of B - A that is expanded where it is nearest the origin.
#pragma once
#include "geometry_closest.hpp"

namespace geometry {

// Bodies that overlap: the largest separation, between bounds, and the faces of the hull where it may be.
struct Hull {
    static constexpr int CORNERS = 120, FACES = 2 * CORNERS;
    struct Face {
        int at[3];
        Vec n;         // outward: minus a direction of separation
        double offset; // of its plane from the origin, m
        bool done;     // whether the body's own plane along n is known
    };
    const Body *a, *b;
    double size, upper; // least known distance of the body's planes from the origin, m
    int corners, faces;
    Vec w[CORNERS], on_a[CORNERS], on_b[CORNERS];
    Face face[FACES];

    // False where the support points span no volume.
    bool begin(const Body &first, const Body &second, double length, const Vec *d, int count);
    // until the least distance is known to `eps`, m, or there is no more room
    void expand(double eps);
    // the face nearest the origin that is not yet `tried` and nearer than `most`, m; -1: none
    int nearest(const bool *tried, double most) const;
    void points(int which, Vec &p, Vec &q) const;

  private:
    int corner(const Vec &n);
    bool insert(int k);
    bool add_face(int i, int j, int k, const Vec &inner);
    Vec middle;
};

} // namespace geometry
