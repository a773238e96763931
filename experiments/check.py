"""A claim with its number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One claim: the value measured, the bound it must keep, and whether it does."""

    name: str
    value: float
    bound: float
    passed: bool
    unit: str = ""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        verdict = "PASS" if self.passed else "FAIL"
        return f"  {verdict}  {self.name}: {self.value:.6g}{unit} (bound {self.bound:.6g}{unit})"


def at_most(name: str, value: float, bound: float, unit: str = "") -> Check:
    """value <= bound; a NaN fails."""
    return Check(name, float(value), float(bound), bool(value <= bound), unit)


def at_least(name: str, value: float, bound: float, unit: str = "") -> Check:
    """value >= bound; a NaN fails."""
    return Check(name, float(value), float(bound), bool(value >= bound), unit)
