// Anderson's acceleration of a fixed-point iteration x <- g(x).
#pragma once
#include <vector>

class Anderson {
  public:
    explicit Anderson(int depth) : depth(depth) {}
    // The next iterate from x and g(x).
    void next(const std::vector<double> &x, const std::vector<double> &g, std::vector<double> &out);
    void forget() { dx.clear(), df.clear(), known = false; }

  private:
    int depth;
    bool known = false;
    std::vector<double> last_x, last_f;
    std::vector<std::vector<double>> dx, df; // differences of iterates and of residuals g(x) - x
};
