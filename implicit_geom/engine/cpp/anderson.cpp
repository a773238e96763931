#include "anderson.hpp"
#include <cmath>

void Anderson::next(const std::vector<double> &x, const std::vector<double> &g, std::vector<double> &out) {
    const std::size_t n = x.size();
    std::vector<double> f(n);
    for (std::size_t i = 0; i < n; ++i) f[i] = g[i] - x[i];
    if (known) {
        std::vector<double> a(n), b(n);
        for (std::size_t i = 0; i < n; ++i) a[i] = x[i] - last_x[i], b[i] = f[i] - last_f[i];
        dx.push_back(a), df.push_back(b);
        if (int(dx.size()) > depth) dx.erase(dx.begin()), df.erase(df.begin());
    }
    last_x = x, last_f = f, known = true;
    // least squares by modified Gram-Schmidt, the latest difference first
    const int m = int(df.size());
    std::vector<std::vector<double>> basis;
    std::vector<std::vector<double>> moved;
    out = g;
    std::vector<double> rest = f;
    for (int k = m - 1; k >= 0; --k) {
        std::vector<double> v = df[k], d = dx[k];
        double before = 0, after = 0;
        for (double e : v) before += e * e;
        for (std::size_t j = 0; j < basis.size(); ++j) {
            double dot = 0;
            for (std::size_t i = 0; i < n; ++i) dot += basis[j][i] * v[i];
            for (std::size_t i = 0; i < n; ++i) v[i] -= dot * basis[j][i], d[i] -= dot * moved[j][i];
        }
        for (double e : v) after += e * e;
        if (!(after > 1e-12 * before) || !(after > 0)) continue;
        const double length = std::sqrt(after);
        for (std::size_t i = 0; i < n; ++i) v[i] /= length, d[i] /= length;
        double dot = 0;
        for (std::size_t i = 0; i < n; ++i) dot += v[i] * rest[i];
        for (std::size_t i = 0; i < n; ++i) rest[i] -= dot * v[i], out[i] -= dot * (d[i] + v[i]);
        basis.push_back(v), moved.push_back(d);
    }
}
