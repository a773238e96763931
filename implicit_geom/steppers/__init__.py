"""Time steppers: implicit Euler, RATTLE, its composition of order four, and what they share."""
