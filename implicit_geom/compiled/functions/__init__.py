"""The functions of bodies and pairs in a compiled step, as CasADi SX."""
