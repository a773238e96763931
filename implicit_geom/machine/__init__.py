"""CasADi graphs to machine code: lowering, loops, object files, dense linear algebra. No physics."""
