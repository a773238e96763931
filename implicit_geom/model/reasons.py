"""Reasons why a step was not an ordinary one, in few words: the column `reason` of `run.steps`.

The compiled march says why it left a step to the stepper, by number; the steppers say why they divided it.
"""

from __future__ import annotations

from enum import IntEnum


class ExitReason(IntEnum):
    """Why a lane leaves the compiled march; where there are several reasons the largest number counts."""

    STOPPED = 1  # it had nothing to do
    MODE = 2
    GAIN = 3
    REACH = 4
    CROSSING = 5
    JUMP = 6
    TANGENT = 7
    INWARD = 8
    IMPACT = 9
    TURN = 10
    NEWTON = 11


WORDS = {
    ExitReason.MODE: "contact changes mode",
    ExitReason.GAIN: "gain of energy",
    ExitReason.REACH: "new pair within reach",
    ExitReason.CROSSING: "bodies may cross",
    ExitReason.JUMP: "contact jumps along a face",
    ExitReason.TANGENT: "tangent along the normal",
    ExitReason.INWARD: "normal points inwards",
    ExitReason.IMPACT: "impact",
    ExitReason.TURN: "body turns too far",
    ExitReason.NEWTON: "Newton did not converge",
}
STRUCK = (ExitReason.IMPACT, ExitReason.NEWTON)  # the step is likely to hold an impact
DIVIDED = {  # how the reasons of the steppers begin
    "Newton's method found no": WORDS[ExitReason.NEWTON],
    "the step gains": WORDS[ExitReason.GAIN],
    "a body turns too far": WORDS[ExitReason.TURN],
    "another pair comes into reach": WORDS[ExitReason.REACH],
    "tunnelling": "tunnelling",
    "the set of": "contacts did not settle",
}
LONGEST = 24  # characters of a reason that is not listed
SHORTER = "shorter last step"


def words(code: float) -> str:
    """The reason that the compiled march gives."""
    return WORDS.get(ExitReason(int(code)), "") if code else ""


def divided(reason: str) -> str:
    """A stepper's reason in few words."""
    for begin, words in DIVIDED.items():
        if reason.startswith(begin):
            return words
    return reason[:LONGEST]


def join_reasons(*reasons: str) -> str:
    """Reasons one after another, each once."""
    return "; ".join(dict.fromkeys(r for r in reasons if r))
