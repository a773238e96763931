"""Studies of many runs: comparison, attribution, advice, sweeps, figures."""
