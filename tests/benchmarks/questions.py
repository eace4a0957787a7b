"""Questions of our own about a file of conversations, and the turns that answer them.

Written against ``dialogues_003.json`` of the Schema-Guided Dialogue data set (dev), as one turn a
line. A turn is named ``dialogue:turn``; any of the evidence answers. ``words`` share their words
with the evidence, ``meaning`` say it otherwise, and in ``context`` the turn that answers does not
say what it is about: the one before it does.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True)
class Question:
    group: str
    text: str
    evidence: frozenset[str]


def _asked(group: str, *questions: tuple[str, str]) -> tuple[Question, ...]:
    return tuple(
        Question(group, text, frozenset(_turn(short) for short in turns.split()))
        for text, turns in questions
    )


def _turn(short: str) -> str:
    """``59:0`` stands for turn 0 of the dialogue ``3_00059``."""
    dialogue, turn = short.split(":")
    return f"3_{int(dialogue):05}:{turn}"


QUESTIONS = (
    *_asked(
        "words",
        ("Which psychologist was found in Corte Madera?", "52:5 69:3"),
        ("Who is the psychologist in Sebastopol?", "43:3"),
        ("Which family counselor works in San Rafael?", "57:3"),
        ("Which psychiatrists are there in Napa?", "35:3 35:5 37:3 55:5"),
        ("Which psychiatrist practises in Vacaville?", "48:5"),
        ("Who asked for an apartment in Rohnert Park?", "124:2"),
        ("When does the alarm for the shuttle to work go off?", "6:3 9:3 15:3 16:3 23:3"),
        ("When is the alarm to pick up the kids?", "13:3 20:3 31:3"),
        ("What is the rent at Marina Park Townhomes?", "122:5"),
        ("How much is Dry Creek Apartments per month?", "116:3"),
        ("What temperature was reported for Nairobi in March?", "109:3"),
        ("Where are the Alpine Vista Apartments?", "119:3 123:3"),
        ("Which apartment is on Continental Circle?", "118:5"),
        ("Which psychologists did we find in Vallejo?", "71:1 71:3"),
        ("What will the temperature in Tomales be?", "99:3"),
    ),
    *_asked(
        "meaning",
        ("Who feels low and wants to talk to somebody?", "59:0 43:0 65:0"),
        ("Who does not want to be seen by acquaintances?", "59:2"),
        ("Who cannot wait and needs to be seen at once?", "65:6"),
        ("Who hopes to relax in nature after work?", "101:0"),
        (
            "Does the flat come without a sofa and a bed?",
            "111:9 118:7 123:7 124:5 125:5 126:5 127:7",
        ),
        ("Who is relocating for a job?", "112:0"),
        ("Who has a dog and needs a home?", "111:4 114:6 115:4 116:0 117:0 124:4"),
        ("When do the children have to be fetched?", "13:3 20:3 31:3"),
        ("Who is hosting a cookout?", "110:0"),
        ("Who is worried about not being on time?", "1:0"),
        ("Who has to go food shopping?", "1:6"),
        ("Who is about to go away and wants a big place?", "119:0"),
        ("Who was pleased that it costs less?", "122:10"),
        ("Who is in a conference on that day?", "36:16"),
        ("Who has to get up at dawn?", "23:0"),
        ("Whose journey depends on the forecast?", "96:0"),
        ("Who prefers to arrange the visit without our help?", "65:16"),
    ),
    *_asked(
        "context",
        ("What is the phone number of the psychologist in Sebastopol?", "43:5"),
        ("How warm is it in Montara?", "78:1"),
        ("What is the humidity in Bodega Bay?", "88:3"),
        ("What is the chance of rain in Windsor?", "92:1"),
        ("How hot is it in Las Vegas?", "92:3"),
        ("What temperature is expected in Tiburon?", "101:3"),
        ("How windy will it be in Tomales?", "98:5"),
        ("What does the apartment in Dublin cost?", "117:5"),
        ("How humid will El Cerrito be?", "84:5"),
        ("Is the apartment in Mountain View furnished?", "118:7"),
        ("What does the place in Castro Valley cost?", "121:3"),
        ("Will it rain in Bolinas?", "94:7"),
        ("What wind speed is expected in Rutherford?", "102:3"),
        ("What does an apartment in Fairfield cost?", "113:3"),
        ("What is the phone number of Alpine Vista Apartments?", "123:5"),
    ),
)
