#include "contact_problem.hpp"
#include "block_lu.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace contact {

namespace {

constexpr int START_SWEEPS = 120;   // before the first Newton step
constexpr int INNER = 12;          // Newton steps of a subproblem
constexpr std::size_t FEW = 24;      // contacts for which Newton steps are tried before sweeps
constexpr double FIRST_WEIGHT = 100; // of their first subproblem
constexpr double NEAR = 0.1;         // of a start near a solution: weight times the error there, over the speeds at hand
constexpr int QUICK = 30;            // their factorisations
constexpr int BUDGET = 600;        // factorisations
constexpr int SWEEPS = 40000;      // sweeps
constexpr int FEW_SWEEPS = 400;    // the same without patience
constexpr int POINTS = 250;          // proximal points alone
constexpr int POINTS_STALLED = 40;   // of them without a better one
constexpr double POINTS_WEIGHT = 10; // of the first of them
constexpr double LEAST_WEIGHT = 1e-3;
constexpr int EASY = 4;              // Newton steps of one after which the weight grows
constexpr double GROWTH = 1.5, SHRINK = 1.0 / 3; // of the weight
constexpr double JAMMED = 0.9;       // error over that before, with which it grows more
constexpr double SWEPT = 100;         // weight, up to which sweeps follow a failure: at larger ones they gain nothing
constexpr double HELD = 1e6;         // weight of contacts in known modes
constexpr double MOST_WEIGHT = 1e9;
constexpr int STALLED = 250;         // subproblems without progress
constexpr int RESTING = 2;           // the same where the error is small enough
constexpr double ROUNDING = 1e-14; // of a subproblem's residual, over the weight and the speeds at hand

constexpr int POINT = 1 + FRICTION; // rows of a contact at one point

// x of A x = b, r rows of at most POINT; false where A is singular.
bool small_solve(const double A[POINT][POINT], const double *b, int r, double *x) {
    double LU[POINT * POINT];
    int pivot[POINT];
    for (int i = 0; i < r; ++i)
        for (int j = 0; j < r; ++j) LU[i * r + j] = A[i][j];
    if (!la::factorise(LU, pivot, r)) return false;
    la::copy(b, x, r);
    la::substitute(LU, pivot, r, x);
    return true;
}

double length_of(const double *p, int from, int rows) {
    double s = 0;
    for (int i = from; i < rows; ++i) s += p[i] * p[i];
    return std::sqrt(s);
}

// P of Alart and Curnier at z = pb - rho u, and what D = -dP/du is made of.
struct Projected {
    double rho;
    bool any, slides;
    bool active[ROWS];
    double along[FRICTION], across; // where it slides: z_f / |z_f|, and rho mu sum P_n / |z_f|
    double sum, lever[FRICTION], spin, friction[FRICTION]; // of a patch: sum P_n, c, u_s and P_f
};

// c = sum p_n lever / sum p_n of a patch with a row of spin; 0 where none presses.
void mean_lever(const Contact &c, const double *p, double *out) {
    double sum = 0;
    for (int f = 0; f < FRICTION; ++f) out[f] = 0;
    for (int r = 0; r < c.normals; ++r) sum += std::max(0.0, p[r]);
    if (!(sum > 0)) return;
    for (int r = 0; r < c.normals; ++r)
        for (int f = 0; f < c.end() - c.normals; ++f) out[f] += std::max(0.0, p[r]) / sum * c.lever[r][f];
}

// p_s = c p_f
double moment(const Contact &c, const double *lever, const double *p) {
    double sum = 0;
    for (int r = c.normals; r < c.end(); ++r) sum += lever[r - c.normals] * p[r];
    return sum;
}

// x of (B + shift) x = -g, n rows of at most FRICTION; false where it has none.
bool shifted_solve(const double B[FRICTION][FRICTION], double shift, const double *g, int n, double *x) {
    if (n == 1) {
        x[0] = -g[0] / (B[0][0] + shift);
        return std::isfinite(x[0]);
    }
    if (n == 2) {
        const double a = B[0][0] + shift, d = B[1][1] + shift, det = a * d - B[0][1] * B[1][0];
        if (!(std::fabs(det) > 0)) return false;
        x[0] = (B[0][1] * g[1] - d * g[0]) / det, x[1] = (B[1][0] * g[0] - a * g[1]) / det;
        return true;
    }
    double whole[9], inverse[9];
    for (int r = 0; r < 3; ++r)
        for (int t = 0; t < 3; ++t) whole[3 * r + t] = B[r][t] + (r == t ? shift : 0.0);
    if (!la::inverse(whole, inverse)) return false;
    for (int r = 0; r < 3; ++r) x[r] = -la::dot(inverse + 3 * r, g);
    return true;
}

// One contact at one point alone: A p + b = u; from p. False where no impulse obeys the law.
//
// Where it presses p_n = p_0 - c p_f; what is left is friction, B p_f + g = u_f, which sticks or has u_f = -shift p_f,
// shift > 0, such that |p_f| = mu p_n.
bool solve_point(const double A[POINT][POINT], const double b[POINT], int rows, double mu, double p[POINT]) {
    const int n = rows - 1;
    double last = 0, against = 0; // |p_f|^2 and -u_f p_f before
    for (int r = 1; r < rows; ++r) {
        double u = b[r];
        for (int t = 0; t < rows; ++t) u += A[r][t] * p[t];
        last += p[r] * p[r], against -= u * p[r];
    }
    for (int r = 0; r < rows; ++r) p[r] = 0;
    if (b[0] >= 0) return true;
    const double p_0 = -b[0] / A[0][0];
    p[0] = p_0;
    if (n == 0 || !(mu > 0)) return true;
    double B[FRICTION][FRICTION], g[FRICTION], c[FRICTION], trace = 0, *p_f = p + 1;
    for (int r = 0; r < n; ++r) {
        c[r] = A[0][1 + r] / A[0][0], g[r] = b[1 + r] + A[1 + r][0] * p_0;
        trace += A[1 + r][1 + r];
        for (int t = 0; t < n; ++t) B[r][t] = A[1 + r][1 + t] - A[1 + r][0] * A[0][1 + t] / A[0][0];
    }
    const auto excess = [&](double shift) {
        if (!shifted_solve(B, shift, g, n, p_f)) return double(INFINITY);
        p[0] = p_0;
        for (int r = 0; r < n; ++r) p[0] -= c[r] * p_f[r];
        return length_of(p_f, 0, n) - mu * p[0];
    };
    double over = excess(0);
    if (over <= 0) return true;
    double low = 0, high = INFINITY, shift = last > 0 && against > 0 ? against / last : trace;
    for (int i = 0; i < 200; ++i) {
        over = excess(shift);
        const double length = length_of(p_f, 0, n);
        if (over > 0) low = shift;
        else high = shift;
        if (std::fabs(over) <= 1e-15 * length || high - low <= 2e-16 * high || low > 1e30 * trace) break;
        // Newton on mu p_n / |p_f| - 1, nearly linear in the shift
        double rate[FRICTION], dot = 0, along = 0;
        if (!shifted_solve(B, shift, p_f, n, rate)) return false;
        for (int r = 0; r < n; ++r) dot += p_f[r] * rate[r], along -= c[r] * rate[r];
        const double ratio = length > 0 ? mu * p[0] / length : 2;
        const double slope = length > 0 ? mu * (along / length - p[0] * dot / (length * length * length)) : 0;
        double next = slope != 0 ? shift + (1 - ratio) / slope : -1;
        if (!(next > low && next < high)) next = high < INFINITY ? (low > 0 ? std::sqrt(low * high) : high / 8) : 8 * low;
        if (next == shift) break;
        shift = next;
    }
    if (!(p[0] >= 0)) return false;
    // on the cone to the last bit
    const double length = length_of(p_f, 0, n);
    if (length > 0)
        for (int r = 0; r < n; ++r) p_f[r] *= mu * p[0] / length;
    return true;
}

// Friction of known size against A p + b: p = -(A + shift)^-1 b, |p| <= most.
bool solve_friction(const double A[FRICTION][FRICTION], const double *b, int rows, double most, double *p) {
    double whole[POINT][POINT], minus[POINT];
    const auto at = [&](double shift) {
        for (int r = 0; r < rows; ++r) {
            for (int t = 0; t < rows; ++t) whole[r][t] = A[r][t] + (r == t ? shift : 0.0);
            minus[r] = -b[r];
        }
        return small_solve(whole, minus, rows, p);
    };
    if (!(most > 0)) {
        for (int r = 0; r < rows; ++r) p[r] = 0;
        return true;
    }
    if (at(0) && length_of(p, 0, rows) <= most) return true;
    double low = 0, high = length_of(b, 0, rows) / most;
    for (int i = 0; i < 100 && high - low > 1e-15 * high; ++i) {
        const double middle = low > 0 ? std::sqrt(low * high) : high / 16;
        if (!at(middle)) return false;
        if (length_of(p, 0, rows) > most) low = middle;
        else high = middle;
        if (low == 0 && high < 1e-30 * most) break;
    }
    const double length = length_of(p, 0, rows);
    for (int r = 0; r < rows; ++r) p[r] *= length > 0 ? most / length : 0.0;
    return true;
}

// The natural map of the law at one contact, m/s; A: what its impulses do to its velocities.
double natural(const Contact &c, const double *A, const double *p, const double *u) {
    double trace = 0;
    for (int r = 0; r < c.end(); ++r) trace += A[r * ROWS + r];
    if (!(trace > 0)) return std::max(0.0, -u[0]);
    const double rho = 1.0 / trace;
    double z[ROWS], P[ROWS], worst = 0, sum = 0, lever[FRICTION];
    for (int r = 0; r < c.normals; ++r) {
        P[r] = std::max(0.0, p[r] - rho * u[r]);
        sum += P[r], worst = std::max(worst, std::fabs(P[r] - p[r]));
    }
    if (c.turns) mean_lever(c, P, lever);
    for (int r = c.normals; r < c.end(); ++r)
        z[r] = p[r] - rho * (u[r] + (c.turns ? lever[r - c.normals] * u[c.end()] : 0.0));
    const double most = c.mu * sum, length = length_of(z, c.normals, c.end());
    for (int r = c.normals; r < c.end(); ++r) {
        P[r] = length <= most ? z[r] : most * z[r] / length;
        worst = std::max(worst, std::fabs(P[r] - p[r]));
    }
    if (c.turns) {
        double extent = 0;
        for (int r = 0; r < c.normals; ++r) extent = std::max(extent, length_of(c.lever[r], 0, c.end() - c.normals));
        if (extent > 0) worst = std::max(worst, std::fabs(moment(c, lever, P) - p[c.end()]) / extent);
    }
    return worst / rho;
}

constexpr int PATCH_STEPS = 40;     // of Newton's method for a patch
constexpr double ALIKE = 1e-10;     // of its points' matrix: what is added where more press than wrenches tell apart

// One patch alone, A p + b = u, from p: Newton's method with the points that press and the mode of friction, stick or
// slip, found anew in each step, where the point of friction is linearised and the law of friction is not. Whether an
// error below `small`, m/s, was reached.
//
// (Where a body spins, the point of friction moves with the impulses, and friction's velocity with it: the map from one
// to the other has a skew part that may be many times the symmetric one, and sweeps do not settle.)
bool solve_patch(const Contact &c, const double *A, const double *b, double small, double *p) {
    const int n = c.normals, count = c.end() - n, spin = c.end();
    const auto entry = [&](int r, int t) { return A[r * ROWS + t]; };
    double trace = 0, u[ROWS], lever[FRICTION] = {0, 0, 0};
    for (int r = 0; r < n; ++r) trace += entry(r, r);
    for (int step = 0; step < PATCH_STEPS; ++step) {
        mean_lever(c, p, lever);
        if (c.turns) p[spin] = moment(c, lever, p);
        for (int r = 0; r < c.rows; ++r) {
            u[r] = b[r];
            for (int t = 0; t < c.rows; ++t) u[r] += entry(r, t) * p[t];
        }
        if (natural(c, A, p, u) <= small) return true;
        int pressing[NORMALS], m = 0;
        double sum = 0;
        for (int r = 0; r < n; ++r) {
            if (p[r] - n / trace * u[r] > 0) pressing[m++] = r, sum += std::max(p[r], 0.0);
            else p[r] = 0;
        }
        if (m == 0) {
            std::fill(p, p + c.rows, 0.0);
            return false;
        }
        const bool rubs = count > 0 && sum > 0; // (at first it is not known where)
        // what the rows do: velocities of the pressing points and of friction, by their impulses
        double rate[ROWS][ROWS], now[ROWS], shift[NORMALS][FRICTION] = {{0}};
        const int size = m + (rubs ? count : 0);
        if (rubs && c.turns)
            for (int j = 0; j < m; ++j)
                for (int f = 0; f < count; ++f) shift[j][f] = (c.lever[pressing[j]][f] - lever[f]) / sum;
        const auto row_of = [&](int i) { return i < m ? pressing[i] : n + i - m; };
        for (int i = 0; i < size; ++i) {
            const int r = row_of(i), f = i - m;
            now[i] = u[r] + (f >= 0 && c.turns ? lever[f] * u[spin] : 0.0);
            for (int j = 0; j < size; ++j) {
                const int t = row_of(j), g = j - m;
                double torque = g >= 0 ? lever[g] : 0; // what the spin's row gets of it
                if (g < 0)
                    for (int k = 0; k < count; ++k) torque += p[n + k] * shift[j][k];
                double sees = entry(r, t);
                if (c.turns && rubs) {
                    sees += entry(r, spin) * torque;
                    if (f >= 0) sees += lever[f] * (entry(spin, t) + entry(spin, spin) * torque) + (g < 0 ? u[spin] * shift[j][f] : 0.0);
                }
                rate[i][j] = sees;
            }
        }
        // the points' impulses by those of friction: q = fixed + by f
        double LU[NORMALS * NORMALS], fixed[NORMALS], by[FRICTION][NORMALS];
        int pivot[NORMALS];
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < m; ++j) LU[i * m + j] = rate[i][j] + (i == j ? ALIKE * trace / n : 0.0);
            fixed[i] = -now[i];
            for (int f = 0; f < size - m; ++f) fixed[i] += rate[i][m + f] * p[n + f], by[f][i] = -rate[i][m + f];
        }
        if (!la::factorise(LU, pivot, m)) return false;
        la::substitute(LU, pivot, m, fixed);
        double presses = 0, more[FRICTION] = {0, 0, 0};
        for (int i = 0; i < m; ++i) presses += fixed[i] += p[pressing[i]];
        for (int f = 0; f < size - m; ++f) {
            la::substitute(LU, pivot, m, by[f]);
            for (int i = 0; i < m; ++i) more[f] += by[f][i];
        }
        double found[POINT] = {0, 0, 0, 0};
        if (rubs) { // friction alone: v = C f + d, |f| <= mu (presses + more f)
            double C[FRICTION][FRICTION], d[FRICTION], whole[POINT][POINT], minus[POINT];
            for (int f = 0; f < count; ++f) {
                d[f] = now[m + f];
                for (int j = 0; j < m; ++j) d[f] += rate[m + f][j] * (fixed[j] - p[pressing[j]]);
                for (int g = 0; g < count; ++g) {
                    C[f][g] = rate[m + f][m + g], d[f] -= rate[m + f][m + g] * p[n + g];
                    for (int j = 0; j < m; ++j) C[f][g] += rate[m + f][j] * by[g][j];
                }
            }
            double diagonal = 0;
            for (int f = 0; f < count; ++f) diagonal += std::fabs(C[f][f]);
            const auto excess = [&](double shift) {
                for (int f = 0; f < count; ++f) {
                    for (int g = 0; g < count; ++g) whole[f][g] = C[f][g] + (f == g ? shift : 0.0);
                    minus[f] = -d[f];
                }
                if (!small_solve(whole, minus, count, found)) return double(INFINITY);
                double most = presses;
                for (int f = 0; f < count; ++f) most += more[f] * found[f];
                return length_of(found, 0, count) - c.mu * most;
            };
            if (excess(0) > 0) {
                double low = 0, high = diagonal;
                while (excess(high) > 0 && high < 1e30 * diagonal) low = high, high *= 8;
                if (!(high < 1e30 * diagonal)) return false;
                double least = low > 0 ? excess(low) : INFINITY, most = excess(high);
                for (int k = 0; k < 200 && high - low > 4e-16 * high; ++k) {
                    // the Illinois rule, or the middle where it knows nothing
                    double middle = k % 3 == 2 || !std::isfinite(least) ? (low + high) / 2 : high - most * (high - low) / (most - least);
                    if (!(middle > low && middle < high)) middle = (low + high) / 2;
                    const double over = excess(middle);
                    if (over > 0) low = middle, least = over;
                    else high = middle, most = over;
                }
                excess(high);
            }
        }
        for (int i = 0; i < m; ++i) {
            double next = fixed[i];
            for (int f = 0; f < size - m; ++f) next += by[f][i] * found[f];
            p[pressing[i]] = next;
        }
        for (int f = 0; f < count; ++f) p[n + f] = found[f];
    }
    return false;
}

// Proximal semi-smooth Newton with Gauss-Seidel sweeps.
class Solver {
  public:
    Solver(const Problem &problem, double tolerance, double enough, double share, bool patience, Solution &s)
        : q(problem), tol(tolerance), enough(enough), share(share), patience(patience), s(s) {
        m = q.dof, size = q.bodies * m;
        prepare();
    }
    bool run(double little);

  private:
    void prepare();
    void velocities_of_impulses();
    void contact_velocities(const std::vector<double> &v);
    double law_error() const;
    void sweep(int count, double until);
    bool subproblem(const std::vector<double> &pb, double weight);
    bool newton(std::vector<double> &pb, double weight, int budget, bool once);
    bool points(double weight, int budget);
    bool local(const Contact &c, const double *own, const double *b, double *p) const;
    double rho_of(std::size_t k, double weight, const double *pb) const;
    void projected(std::size_t k, double weight, const double *pb, const double *u, double *P, Projected &d) const;
    void derivative(const Contact &c, const Projected &d, const double *x, double *out) const;
    double residual(const std::vector<double> &v, const std::vector<double> &pb, double c, std::vector<double> &P,
                    std::vector<double> &R);
    void keep_best();

    const Problem &q;
    double tol, enough, share;
    bool patience;
    Solution &s;
    int m, size;
    std::vector<double> A;    // (contacts, ROWS, ROWS) own blocks of the Delassus matrix
    std::vector<double> K;    // (contacts, 2, ROWS, DOF): rows of (M^-1 J^T)^T
    std::vector<double> best_p, scratch;
    double best = std::numeric_limits<double>::infinity();
    std::unique_ptr<BlockLU> lu;
    std::vector<double> v, trial, R, R_trial, dv, P, P_trial; // of the subproblem
    double mass_scale = 0, speed = 0, mean_speed = 0;
    int steps = 0; // Newton steps of the last subproblem
    double change = 0;
};

void Solver::prepare() {
    const std::size_t n = q.contacts.size();
    A.assign(n * ROWS * ROWS, 0.0), K.assign(n * 2 * ROWS * DOF, 0.0);
    for (std::size_t k = 0; k < n; ++k) {
        const Contact &c = q.contacts[k];
        for (int side = 0; side < 2; ++side) {
            if (c.body[side] < 0) continue;
            const double *Mi = &q.M_inverse[std::size_t(c.body[side]) * m * m];
            for (int r = 0; r < c.rows; ++r) {
                double *row = &K[((k * 2 + side) * ROWS + r) * DOF];
                for (int j = 0; j < m; ++j) {
                    double sum = 0;
                    for (int i = 0; i < m; ++i) sum += Mi[j * m + i] * c.J[side][r][i];
                    row[j] = sum;
                }
            }
            for (int r = 0; r < c.rows; ++r)
                for (int t = 0; t < c.rows; ++t) {
                    double sum = 0;
                    for (int j = 0; j < m; ++j) sum += c.seen(side, r)[j] * K[((k * 2 + side) * ROWS + t) * DOF + j];
                    A[(k * ROWS + r) * ROWS + t] += sum;
                }
        }
    }
    if (s.p.size() != n * ROWS) s.p.assign(n * ROWS, 0.0), s.weight = 0;
    s.u.assign(n * ROWS, 0.0), s.v.assign(size, 0.0);
}

void Solver::velocities_of_impulses() {
    s.v = q.v_free;
    for (std::size_t k = 0; k < q.contacts.size(); ++k) {
        const Contact &c = q.contacts[k];
        for (int side = 0; side < 2; ++side) {
            if (c.body[side] < 0) continue;
            double *v = &s.v[std::size_t(c.body[side]) * m];
            for (int r = 0; r < c.rows; ++r) {
                const double p = s.p[k * ROWS + r];
                if (p == 0) continue;
                const double *row = &K[((k * 2 + side) * ROWS + r) * DOF];
                for (int j = 0; j < m; ++j) v[j] += row[j] * p;
            }
        }
    }
}

void Solver::contact_velocities(const std::vector<double> &v) {
    for (std::size_t k = 0; k < q.contacts.size(); ++k) {
        const Contact &c = q.contacts[k];
        for (int r = 0; r < c.rows; ++r) {
            double sum = c.w[r];
            for (int side = 0; side < 2; ++side) {
                if (c.body[side] < 0) continue;
                const double *own = &v[std::size_t(c.body[side]) * m], *row = c.seen(side, r);
                for (int j = 0; j < m; ++j) sum += row[j] * own[j];
            }
            s.u[k * ROWS + r] = sum;
        }
    }
}

double Solver::law_error() const {
    double worst = 0;
    for (std::size_t k = 0; k < q.contacts.size(); ++k) {
        const double e = natural(q.contacts[k], &A[k * ROWS * ROWS], &s.p[k * ROWS], &s.u[k * ROWS]);
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

void Solver::keep_best() {
    velocities_of_impulses();
    contact_velocities(s.v);
    const double e = law_error();
    if (e < best) best = e, best_p = s.p;
}

// One contact with the others' impulses given: A p + b its velocities; from p.
bool Solver::local(const Contact &c, const double *own, const double *b, double *p) const {
    if (c.normals == 1) {
        double point[POINT][POINT];
        for (int r = 0; r < c.rows; ++r)
            for (int t = 0; t < c.rows; ++t) point[r][t] = own[r * ROWS + t];
        return solve_point(point, b, c.rows, c.mu, p);
    }
    for (int round = 0; round < 3; ++round) {
        double sum = 0;
        for (int r = 0; r < c.normals; ++r) {
            double u = b[r];
            for (int t = 0; t < c.rows; ++t) u += own[r * ROWS + t] * p[t];
            p[r] = std::max(0.0, p[r] - u / own[r * ROWS + r]);
            sum += p[r];
        }
        const int count = c.end() - c.normals, spin = c.end();
        if (!count) continue;
        double block[FRICTION][FRICTION], rest[FRICTION], found[POINT], lever[FRICTION] = {0, 0, 0};
        if (c.turns) mean_lever(c, p, lever);
        const auto entry = [&](int r, int t) { return own[r * ROWS + t]; };
        for (int r = 0; r < count; ++r) {
            const int row = c.normals + r;
            rest[r] = b[row];
            for (int t = 0; t < c.normals; ++t) rest[r] += entry(row, t) * p[t];
            for (int t = 0; t < count; ++t) block[r][t] = entry(row, c.normals + t);
            if (!c.turns) continue;
            rest[r] += lever[r] * b[spin];
            for (int t = 0; t < c.normals; ++t) rest[r] += lever[r] * entry(spin, t) * p[t];
            for (int t = 0; t < count; ++t)
                block[r][t] += lever[r] * entry(spin, c.normals + t) + entry(row, spin) * lever[t] + lever[r] * lever[t] * entry(spin, spin);
        }
        if (!solve_friction(block, rest, count, c.mu * sum, found)) return false;
        for (int r = 0; r < count; ++r) p[c.normals + r] = found[r];
        if (c.turns) p[spin] = moment(c, lever, p);
    }
    return true;
}

void Solver::sweep(int count, double until) {
    velocities_of_impulses();
    for (int i = 0; i < count; ++i) {
        double largest = 0;
        for (std::size_t k = 0; k < q.contacts.size(); ++k) {
            const Contact &c = q.contacts[k];
            double b[ROWS] = {0}, p[ROWS];
            const double *own = &A[k * ROWS * ROWS], *last = &s.p[k * ROWS];
            for (int r = 0; r < c.rows; ++r) {
                double sum = c.w[r];
                for (int side = 0; side < 2; ++side) {
                    if (c.body[side] < 0) continue;
                    const double *v = &s.v[std::size_t(c.body[side]) * m], *row = c.seen(side, r);
                    for (int j = 0; j < m; ++j) sum += row[j] * v[j];
                }
                for (int t = 0; t < c.rows; ++t) sum -= own[r * ROWS + t] * last[t];
                b[r] = sum, p[r] = last[r];
            }
            if (!local(c, own, b, p)) continue;
            for (int r = 0; r < c.rows; ++r) {
                const double d = p[r] - s.p[k * ROWS + r];
                if (d == 0) continue;
                if (r < c.end()) largest = std::max(largest, std::fabs(d) * own[r * ROWS + r]);
                s.p[k * ROWS + r] = p[r];
                for (int side = 0; side < 2; ++side) {
                    if (c.body[side] < 0) continue;
                    double *v = &s.v[std::size_t(c.body[side]) * m];
                    const double *row = &K[((k * 2 + side) * ROWS + r) * DOF];
                    for (int j = 0; j < m; ++j) v[j] += row[j] * d;
                }
            }
        }
        ++s.sweeps;
        if (largest <= until) break;
    }
}

// weight (m + p_n / V), V the mean speed of contacts without impulses: with m alone contacts of light bodies that carry
// heavy ones would take as many proximal points as the load is larger than m V.
double Solver::rho_of(std::size_t k, double weight, const double *pb) const {
    const int n = q.contacts[k].normals;
    double sum = 0, load = 0;
    for (int r = 0; r < n; ++r) sum += A[(k * ROWS + r) * ROWS + r], load += std::max(pb[r], 0.0);
    return weight * (n / sum + (mean_speed > 0 ? load / (n * mean_speed) : 0.0));
}

void Solver::projected(std::size_t k, double weight, const double *pb, const double *u, double *P, Projected &d) const {
    const Contact &c = q.contacts[k];
    const double rho = d.rho = rho_of(k, weight, pb);
    double sum = 0;
    d.any = d.slides = false;
    for (int r = 0; r < c.normals; ++r) {
        const double z = pb[r] - rho * u[r];
        d.active[r] = z > 0;
        P[r] = d.active[r] ? z : 0.0;
        sum += P[r], d.any |= d.active[r];
    }
    d.sum = sum, d.spin = c.turns ? u[c.end()] : 0.0;
    for (int r = c.normals; r < c.rows; ++r) P[r] = 0;
    if (!d.any) return;
    for (double &lever : d.lever) lever = 0;
    if (c.turns) mean_lever(c, P, d.lever);
    for (int r = c.normals; r < c.end(); ++r) P[r] = pb[r] - rho * (u[r] + d.lever[r - c.normals] * d.spin);
    const double most = c.mu * sum, length = length_of(P, c.normals, c.end());
    if (length > most) {
        d.slides = true, d.across = rho * most / length;
        for (int r = c.normals; r < c.end(); ++r) d.along[r - c.normals] = P[r] / length, P[r] *= most / length;
    }
    if (!c.turns) return;
    P[c.end()] = moment(c, d.lever, P);
    for (int r = c.normals; r < c.end(); ++r) d.friction[r - c.normals] = P[r];
}

// D x at one contact.
void Solver::derivative(const Contact &c, const Projected &d, const double *x, double *out) const {
    const int count = c.end() - c.normals;
    double sum = 0, part = 0, y[FRICTION], shift[FRICTION] = {0, 0, 0}; // shift: -dc
    for (int r = 0; r < c.normals; ++r) {
        out[r] = d.active[r] ? d.rho * x[r] : 0.0;
        sum += out[r];
    }
    if (c.turns)
        for (int r = 0; r < c.normals; ++r)
            for (int f = 0; f < count; ++f) shift[f] += (c.lever[r][f] - d.lever[f]) * out[r] / d.sum;
    for (int f = 0; f < count; ++f) {
        y[f] = x[c.normals + f];
        if (c.turns) y[f] += d.lever[f] * x[c.end()] - d.spin * shift[f];
        if (d.slides) part += d.along[f] * y[f];
    }
    for (int f = 0; f < count; ++f)
        out[c.normals + f] = d.slides ? c.mu * d.along[f] * sum + d.across * (y[f] - part * d.along[f]) : d.rho * y[f];
    if (!c.turns) return;
    out[c.end()] = 0;
    for (int f = 0; f < count; ++f) out[c.end()] += shift[f] * d.friction[f] + d.lever[f] * out[c.normals + f];
}

// R = M (v - v_free) - H P and its length, |R| in M^-1.
double Solver::residual(const std::vector<double> &v, const std::vector<double> &pb, double c, std::vector<double> &P,
                        std::vector<double> &R) {
    for (int b = 0; b < q.bodies; ++b) {
        const double *M = &q.M[std::size_t(b) * m * m];
        for (int i = 0; i < m; ++i) {
            double sum = 0;
            for (int j = 0; j < m; ++j) sum += M[i * m + j] * (v[std::size_t(b) * m + j] - q.v_free[std::size_t(b) * m + j]);
            R[std::size_t(b) * m + i] = sum;
        }
    }
    contact_velocities(v);
    change = 0;
    Projected d;
    for (std::size_t k = 0; k < q.contacts.size(); ++k) {
        const Contact &o = q.contacts[k];
        projected(k, c, &pb[k * ROWS], &s.u[k * ROWS], &P[k * ROWS], d);
        const double rho = d.rho;
        for (int r = 0; r < o.rows; ++r) {
            if (r < o.end()) change = std::max(change, std::fabs(P[k * ROWS + r] - pb[k * ROWS + r]) / rho);
            for (int side = 0; side < 2; ++side)
                if (o.body[side] >= 0)
                    for (int j = 0; j < m; ++j) R[std::size_t(o.body[side]) * m + j] -= o.J[side][r][j] * P[k * ROWS + r];
        }
    }
    double sum = 0;
    for (int b = 0; b < q.bodies; ++b) {
        const double *Mi = &q.M_inverse[std::size_t(b) * m * m], *own = &R[std::size_t(b) * m];
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) sum += own[i] * Mi[i * m + j] * own[j];
    }
    return std::sqrt(std::max(sum, 0.0));
}

// One proximal subproblem, R(v) = M (v - v_free) - H P = 0 with P about pb, by Newton steps from v. Whether it is solved.
bool Solver::subproblem(const std::vector<double> &pb, double weight) {
    const std::size_t n = q.contacts.size();
    if (!lu) {
        std::vector<std::pair<int, int>> edges;
        for (const Contact &c : q.contacts)
            if (c.body[0] >= 0 && c.body[1] >= 0) edges.emplace_back(c.body[0], c.body[1]);
        lu = std::make_unique<BlockLU>(q.bodies, m, edges);
        for (int b = 0; b < q.bodies; ++b) mass_scale = std::max(mass_scale, q.M[std::size_t(b) * m * m]);
        for (int i = 0; i < size; ++i) speed = std::max(speed, std::fabs(q.v_free[i]));
        for (auto *each : {&trial, &R, &R_trial, &dv}) each->assign(size, 0.0);
        P.assign(n * ROWS, 0.0), P_trial.assign(n * ROWS, 0.0);
    }
    double length = residual(v, pb, weight, P, R);
    double last_half = length;
    int since = 0;
    bool solved = false;
    const double floor = ROUNDING * std::max(weight, 1.0) * speed * std::sqrt(mass_scale); // (no step helps there)
    for (steps = 0; steps < INNER;) {
        const double small = std::max(0.1 * tol, std::min(0.1 * change, 1e-3));
        // |M^-1 R| in m/s, about
        if (length <= small * std::sqrt(mass_scale) * 1e-1 || length <= 0.05 * tol * std::sqrt(mass_scale)) {
            solved = true;
            break;
        }
        lu->clear();
        for (int b = 0; b < q.bodies; ++b) {
            double *block = lu->block(b, b);
            const double *M = &q.M[std::size_t(b) * m * m];
            for (int i = 0; i < m * m; ++i) block[i] += M[i];
        }
        for (std::size_t k = 0; k < n; ++k) {
            const Contact &c = q.contacts[k];
            double own[ROWS];
            Projected d;
            projected(k, weight, &pb[k * ROWS], &s.u[k * ROWS], own, d);
            if (!d.any) continue;
            for (int t = 0; t < 2; ++t) {
                if (c.body[t] < 0) continue;
                double DJ[ROWS][DOF];
                for (int j = 0; j < m; ++j) {
                    double x[ROWS], Dx[ROWS];
                    for (int r = 0; r < c.rows; ++r) x[r] = c.seen(t, r)[j];
                    derivative(c, d, x, Dx);
                    for (int r = 0; r < c.rows; ++r) DJ[r][j] = Dx[r];
                }
                for (int side = 0; side < 2; ++side) {
                    if (c.body[side] < 0) continue;
                    double *block = lu->block(c.body[side], c.body[t]);
                    for (int r = 0; r < c.rows; ++r)
                        for (int i = 0; i < m; ++i) {
                            const double f = c.J[side][r][i];
                            if (f != 0)
                                for (int j = 0; j < m; ++j) block[i * m + j] += f * DJ[r][j];
                        }
                }
            }
        }
        ++s.factorisations;
        if (!lu->factorise()) break;
        for (int i = 0; i < size; ++i) dv[i] = -R[i];
        lu->solve(dv.data());
        double share = 1, found = length;
        bool fell = false;
        for (int h = 0; h < 7; ++h, share /= 2) {
            for (int i = 0; i < size; ++i) trial[i] = v[i] + share * dv[i];
            found = residual(trial, pb, weight, P_trial, R_trial);
            if (found < length) {
                fell = true;
                break;
            }
        }
        ++steps;
        if (!fell) {
            residual(v, pb, weight, P, R);
            break;
        }
        const bool rounds = found <= floor && found > length / 10;
        v.swap(trial), P.swap(P_trial), R.swap(R_trial), length = found;
        if (rounds) break;
        if (length <= last_half / 2) last_half = length, since = 0;
        else if (++since >= 5) break;
    }
    solved |= length <= floor;
    if (!solved) return false;
    if (weight > 100 && s.factorisations > 0) {
        // v and p as unknowns of their own: otherwise impulses keep an error of the weight's rounding
        std::vector<double> p = P;
        for (int again = 0; again < 2; ++again) {
            for (int b = 0; b < q.bodies; ++b) {
                const double *M = &q.M[std::size_t(b) * m * m];
                for (int i = 0; i < m; ++i) {
                    double sum = 0;
                    for (int j = 0; j < m; ++j)
                        sum += M[i * m + j] * (v[std::size_t(b) * m + j] - q.v_free[std::size_t(b) * m + j]);
                    dv[std::size_t(b) * m + i] = -sum;
                }
            }
            for (std::size_t k = 0; k < n; ++k)
                for (int side = 0; side < 2; ++side)
                    if (q.contacts[k].body[side] >= 0)
                        for (int r = 0; r < q.contacts[k].rows; ++r)
                            for (int j = 0; j < m; ++j)
                                dv[std::size_t(q.contacts[k].body[side]) * m + j] +=
                                    q.contacts[k].J[side][r][j] * p[k * ROWS + r];
            lu->solve(dv.data());
            contact_velocities(v);
            for (std::size_t k = 0; k < n; ++k) {
                const Contact &c = q.contacts[k];
                double own[ROWS], du[ROWS], dp[ROWS];
                Projected d;
                projected(k, weight, &pb[k * ROWS], &s.u[k * ROWS], own, d);
                for (int r = 0; r < c.rows; ++r) {
                    du[r] = 0;
                    for (int side = 0; side < 2; ++side)
                        if (c.body[side] >= 0)
                            for (int j = 0; j < m; ++j)
                                du[r] += c.seen(side, r)[j] * dv[std::size_t(c.body[side]) * m + j];
                }
                for (int r = 0; r < c.rows; ++r) dp[r] = 0;
                if (d.any) derivative(c, d, du, dp);
                for (int r = 0; r < c.rows; ++r) p[k * ROWS + r] -= dp[r];
                if (!c.turns) continue;
                double lever[FRICTION];
                mean_lever(c, &p[k * ROWS], lever);
                p[k * ROWS + std::size_t(c.end())] = moment(c, lever, &p[k * ROWS]);
            }
            for (int i = 0; i < size; ++i) v[i] += dv[i];
        }
        P = p;
    }
    return true;
}

// Proximal points, with sweeps after those that are not found. `once`: given up where one is not.
bool Solver::newton(std::vector<double> &pb, double weight, int budget, bool once) {
    int hold = 4, blocked = 0, sweeps = 50, stalled = 0;
    velocities_of_impulses();
    v = s.v;
    const int most = patience ? SWEEPS : FEW_SWEEPS;
    while (s.factorisations < budget && s.sweeps < most) {
        const std::vector<double> v_before = v, pb_before = pb;
        if (subproblem(pb, weight)) {
            s.p = P;
            pb = P;
            const double before = best;
            keep_best();
            s.weight = weight;
            if (best <= tol) return true;
            stalled = best < 0.9 * before ? 0 : stalled + 1;
            if (stalled > (best <= enough ? RESTING : STALLED)) return best <= enough;
            if (blocked > 0) --blocked;
            else if (steps <= 7) weight = std::min(weight * (steps <= 1 ? 16 : steps <= 2 ? 4 : 2), MOST_WEIGHT);
        } else {
            if (once) return false;
            v = v_before, pb = pb_before;
            if (weight < SWEPT) {
                s.p = pb;
                sweep(sweeps, 0.1 * tol);
                pb = s.p;
                keep_best();
                if (best <= tol) return true;
                v = s.v;
                sweeps = std::min(int(1.5 * sweeps), 2000);
            }
            weight *= 0.4, blocked = hold, hold = std::min(16, hold + 1);
        }
    }
    return false;
}

// Proximal points alone, whose weight grows slowly: in piles of pressed bodies, whose contacts stick in loops, sweeps
// undo what the points have found.
bool Solver::points(double weight, int budget) {
    std::vector<double> pb = s.p;
    velocities_of_impulses();
    v = s.v;
    int since = 0;
    const int end = s.factorisations + budget;
    for (int i = 0; i < POINTS && s.factorisations < end && weight > LEAST_WEIGHT && since <= POINTS_STALLED; ++i) {
        const std::vector<double> v_before = v;
        if (!subproblem(pb, weight)) {
            v = v_before, weight *= SHRINK;
            continue;
        }
        s.p = pb = P;
        const double before = best;
        keep_best();
        s.weight = weight;
        if (best <= tol) return true;
        since = best < before ? 0 : since + 1;
        // (impulses of a loop grow by the weight until one of its contacts slips)
        const bool jammed = steps <= 1 && best > JAMMED * before;
        if (steps <= EASY) weight = std::min(weight * (jammed ? 10.0 : GROWTH), MOST_WEIGHT);
    }
    return false;
}

bool Solver::run(double little) {
    if (q.contacts.empty()) {
        s.v = q.v_free, s.error = 0;
        return true;
    }
    best_p = s.p;
    contact_velocities(q.v_free);
    int rows = 0;
    for (std::size_t k = 0; k < q.contacts.size(); ++k)
        for (int r = 0; r < q.contacts[k].end(); ++r, ++rows) mean_speed += s.u[k * ROWS + r] * s.u[k * ROWS + r];
    mean_speed = std::sqrt(mean_speed / rows);
    keep_best();
    tol = std::max(tol, share * best), enough = std::max(enough, share * best);
    patience = patience && best > little;
    if (best > tol && q.contacts.size() == 1 && q.contacts[0].normals > 1) {
        double own[ROWS];
        for (int r = 0; r < q.contacts[0].rows; ++r) { // (u of free motion)
            own[r] = q.contacts[0].w[r];
            for (int side = 0; side < 2; ++side)
                if (q.contacts[0].body[side] >= 0)
                    for (int j = 0; j < m; ++j) own[r] += q.contacts[0].seen(side, r)[j] * q.v_free[std::size_t(q.contacts[0].body[side]) * m + j];
        }
        solve_patch(q.contacts[0], A.data(), own, 0.1 * tol, s.p.data());
        ++s.factorisations;
        keep_best();
        if (best > tol) s.p = best_p;
    }
    // Newton steps alone, from a solution near by or where contacts are few
    const bool near = s.weight > 0;
    double speed = 0;
    for (double v : q.v_free) speed = std::max(speed, std::fabs(v));
    const double weight = near ? std::max(1.0, std::min(s.weight / 4, NEAR * speed / best)) : FIRST_WEIGHT;
    if (best > tol && (near || q.contacts.size() <= FEW)) {
        std::vector<double> pb = s.p;
        if (!newton(pb, weight, QUICK, true) && !near) s.weight = 0;
        s.p = best_p;
    }
    for (int i = 0; i < 3 && best > tol; ++i) {
        sweep(START_SWEEPS / 3, 0.01 * tol);
        keep_best();
    }
    if (best > tol) {
        s.p = best_p;
        std::vector<double> pb = s.p;
        newton(pb, near ? std::max(1.0, weight / 4) : 1.0, patience ? BUDGET : 2 * QUICK, false);
    }
    if (best > enough && patience && q.contacts.size() > FEW) {
        s.p = best_p;
        points(POINTS_WEIGHT, BUDGET);
    }
    s.p = best_p;
    velocities_of_impulses();
    contact_velocities(s.v);
    s.error = law_error();
    return s.error <= enough;
}

} // namespace

bool solve_held(const Problem &q, const std::vector<Held> &held, double enough, Solution &s) {
    const int m = q.dof, size = q.bodies * m;
    const std::size_t n = q.contacts.size();
    std::vector<std::pair<int, int>> edges;
    for (const Contact &c : q.contacts)
        if (c.body[0] >= 0 && c.body[1] >= 0) edges.emplace_back(c.body[0], c.body[1]);
    BlockLU lu(q.bodies, m, edges);
    lu.clear();
    for (int b = 0; b < q.bodies; ++b) {
        double *block = lu.block(b, b);
        for (int i = 0; i < m * m; ++i) block[i] += q.M[std::size_t(b) * m * m + i];
    }
    // rows that are zero: those of normals where it slides, all where it sticks; `force` is what each pushes along
    std::vector<double> rho(n), force(n * 2 * ROWS * DOF, 0.0);
    const auto rows = [&](std::size_t k) { return held[k].slides ? q.contacts[k].normals : q.contacts[k].rows; };
    const auto at = [&](std::size_t k, int side, int r) { return &force[((k * 2 + std::size_t(side)) * ROWS + std::size_t(r)) * DOF]; };
    for (std::size_t k = 0; k < n; ++k) {
        const Contact &c = q.contacts[k];
        double A = 0;
        for (int side = 0; side < 2; ++side) {
            if (c.body[side] < 0) continue;
            const double *Mi = &q.M_inverse[std::size_t(c.body[side]) * m * m];
            for (int i = 0; i < m; ++i)
                for (int j = 0; j < m; ++j) A += c.J[side][0][i] * Mi[i * m + j] * c.J[side][0][j];
            for (int r = 0; r < rows(k); ++r)
                for (int j = 0; j < m; ++j) {
                    at(k, side, r)[j] = c.J[side][r][j];
                    if (held[k].slides)
                        for (int t = c.normals; t < c.rows; ++t)
                            at(k, side, r)[j] -= c.mu * held[k].along[t - c.normals] * c.J[side][t][j];
                }
        }
        rho[k] = HELD / A;
        for (int side = 0; side < 2; ++side)
            for (int t = 0; t < 2; ++t) {
                if (c.body[side] < 0 || c.body[t] < 0) continue;
                double *block = lu.block(c.body[side], c.body[t]);
                for (int r = 0; r < rows(k); ++r)
                    for (int i = 0; i < m; ++i)
                        for (int j = 0; j < m; ++j) block[i * m + j] += rho[k] * at(k, side, r)[i] * c.seen(t, r)[j];
            }
    }
    if (!lu.factorise()) return false;
    std::vector<double> v = q.v_free, p(n * ROWS, 0.0), u(n * ROWS), R(size);
    double last = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 30; ++round) {
        for (int b = 0; b < q.bodies; ++b)
            for (int i = 0; i < m; ++i) {
                double sum = 0;
                for (int j = 0; j < m; ++j)
                    sum += q.M[(std::size_t(b) * m + i) * m + j] * (v[std::size_t(b) * m + j] - q.v_free[std::size_t(b) * m + j]);
                R[std::size_t(b) * m + i] = -sum;
            }
        double worst = 0;
        for (std::size_t k = 0; k < n; ++k) {
            const Contact &c = q.contacts[k];
            for (int r = 0; r < c.rows; ++r) {
                double sum = c.w[r];
                for (int side = 0; side < 2; ++side)
                    if (c.body[side] >= 0)
                        for (int j = 0; j < m; ++j) sum += c.seen(side, r)[j] * v[std::size_t(c.body[side]) * m + j];
                u[k * ROWS + r] = sum;
                if (r >= rows(k)) continue;
                worst = std::max(worst, std::fabs(sum));
                for (int side = 0; side < 2; ++side)
                    if (c.body[side] >= 0)
                        for (int j = 0; j < m; ++j)
                            R[std::size_t(c.body[side]) * m + j] += at(k, side, r)[j] * (p[k * ROWS + r] - rho[k] * sum);
            }
        }
        s.error = worst;
        if (round > 1 && (worst <= 1e-3 * enough || worst >= last / 2)) break;
        last = round ? worst : last;
        lu.solve(R.data());
        for (std::size_t k = 0; k < n; ++k) {
            const Contact &c = q.contacts[k];
            for (int r = 0; r < rows(k); ++r) {
                double du = u[k * ROWS + r];
                for (int side = 0; side < 2; ++side)
                    if (c.body[side] >= 0)
                        for (int j = 0; j < m; ++j) du += c.seen(side, r)[j] * R[std::size_t(c.body[side]) * m + j];
                p[k * ROWS + r] -= rho[k] * du;
            }
        }
        for (int i = 0; i < size; ++i) v[i] += R[i];
    }
    s.v = v, s.u = u, s.p = p;
    for (std::size_t k = 0; k < n; ++k)
        if (held[k].slides) {
            const Contact &c = q.contacts[k];
            double sum = 0;
            for (int r = 0; r < c.normals; ++r) sum += p[k * ROWS + r];
            for (int t = c.normals; t < c.rows; ++t) s.p[k * ROWS + t] = -c.mu * held[k].along[t - c.normals] * sum;
        }
    s.factorisations = 1;
    return s.error <= enough;
}

bool solve(const Problem &problem, double tolerance, double enough, Solution &s, double share, bool patience, double little) {
    s.factorisations = s.sweeps = 0;
    return Solver(problem, tolerance, enough, share, patience, s).run(little);
}

} // namespace contact
