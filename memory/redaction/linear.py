"""Whether a regular expression runs in linear time under Python's backtracking matcher.

The rule is strict rather than clever: what it admits is linear, and what it refuses can be written
with bounds. A repetition without a limit has to be of single characters, behind something none of
them can match (or every start inside its run would read the run again), and must end the pattern
or be followed by something none of them can match (or giving back one character after the other
would try everything behind it again). All else is bounded, and the number of ways to match it from
one start has to be small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["objection"]

# The parser is private, but it is the one re.compile uses: a second grammar would disagree with it.
_PARSER: Any = getattr(re, "_parser")  # noqa: B009 - the type checker does not know the name
_WAYS = 1_000
_WIDTH = 1_000

_UNLIMITED = "must not repeat without limit here: write {1,64}, or end on the repetition"
_COSTLY = "can match in too many ways: lower the bounds of its repetitions"
_UNSUPPORTED = "must not use back references or conditionals"
_EMPTY = "must not match the empty string"

_SINGLE = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY"})
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_ZERO_WIDTH = frozenset({"AT", "ASSERT", "ASSERT_NOT"})
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
# Enough to tell sets apart: Latin, and one or two of every other sort of character.
_SAMPLE = "".join(map(chr, range(0x250))) + "\u03b1\u0416\u05d0\u0627\u0915\u0966\u2003\u2014\u4e2d"

_Node = tuple[Any, Any]


class _RefusedError(Exception):
    """Carries the rule that the pattern breaks."""


def objection(pattern: str) -> str:
    """Return the rule that the pattern breaks; empty if it is linear and matches something."""
    tree = _PARSER.parse(pattern)
    shortest, _ = tree.getwidth()
    if shortest == 0:
        return _EMPTY
    sample = frozenset(_SAMPLE + pattern + pattern.swapcase())
    try:
        cost = _Sequence(list(_flat(tree)), sample).cost(outermost=True)
    except _RefusedError as refused:
        return str(refused)
    return _COSTLY if cost > _WAYS or shortest > _WIDTH else ""


def _flat(nodes: Sequence[_Node]) -> Iterator[_Node]:
    """Yield the nodes with plain groups dissolved."""
    for op, argument in nodes:
        if str(op) == "SUBPATTERN":
            yield from _flat(argument[3])
        elif str(op) == "ATOMIC_GROUP":
            yield from _flat(argument)
        else:
            yield op, argument


class _Sequence:
    """Nodes that follow one another."""

    def __init__(self, nodes: list[_Node], sample: frozenset[str]) -> None:
        self._nodes = nodes
        self._sample = sample

    def cost(self, *, outermost: bool = False) -> int:
        """Return an upper bound on the ways to match from one start."""
        product, total = 1, 1
        for index, (op, argument) in enumerate(self._nodes):
            name = str(op)
            if name in _REPEATS:
                ways, settled = self._repeat(index, argument, outermost=outermost)
            else:
                ways, settled = self._other(name, argument), False
            if settled:
                total += ways
            else:
                product *= ways
            if product * total > _WAYS:
                raise _RefusedError(_COSTLY)
        return product * total

    def _repeat(self, index: int, argument: Any, *, outermost: bool) -> tuple[int, bool]:
        """Return the ways of a repetition, and whether what follows leaves only one to succeed."""
        least, most, body = argument
        nodes = list(_flat(body))
        single = len(nodes) == 1 and str(nodes[0][0]) in _SINGLE
        settled = single and self._followed_by_other(index, nodes[0])
        if most == _PARSER.MAXREPEAT:
            if not (outermost and settled and self._preceded_by_other(index, nodes[0])):
                raise _RefusedError(_UNLIMITED)
            return 1, True
        if single:
            return most - least + 1, settled
        each = _Sequence(nodes, self._sample).cost()
        ways = 0
        for count in range(least, most + 1):
            ways += each**count
            if ways > _WAYS:
                raise _RefusedError(_COSTLY)
        return ways, False

    def _other(self, name: str, argument: Any) -> int:
        if name in _SINGLE or name == "AT":
            return 1
        if name == "BRANCH":
            return sum(_Sequence(list(_flat(way)), self._sample).cost() for way in argument[1])
        if name in {"ASSERT", "ASSERT_NOT"}:
            return _Sequence(list(_flat(argument[1])), self._sample).cost()
        raise _RefusedError(_UNSUPPORTED)

    def _preceded_by_other(self, index: int, node: _Node) -> bool:
        """Return whether something that must match before this can match none of its characters."""
        for op, argument in self._nodes[:index]:
            name = str(op)
            if name in _SINGLE and self._disjoint((op, argument), node):
                return True
            if name in _REPEATS and argument[0] > 0:
                inner = list(_flat(argument[2]))
                if any(str(one[0]) in _SINGLE and self._disjoint(one, node) for one in inner):
                    return True
        return False

    def _followed_by_other(self, index: int, node: _Node) -> bool:
        """Return whether the pattern ends here, or goes on with none of the node's characters."""
        for op, argument in self._nodes[index + 1 :]:
            name = str(op)
            if name in _ZERO_WIDTH:
                continue
            if name in _SINGLE:
                return self._disjoint((op, argument), node)
            if name not in _REPEATS:
                return False
            inner = list(_flat(argument[2]))
            if not inner or str(inner[0][0]) not in _SINGLE or not self._disjoint(inner[0], node):
                return False
            if argument[0] > 0:
                return True
        return True

    def _disjoint(self, left: _Node, right: _Node) -> bool:
        return not any(_accepts(left, char) and _accepts(right, char) for char in self._sample)


def _accepts(node: _Node, char: str) -> bool:
    """Return whether a single-character node takes the character, in either case."""
    return any(_takes(node, form) for form in {char, char.lower(), char.upper()} if len(form) == 1)


def _takes(node: _Node, char: str) -> bool:
    op, argument = node
    name = str(op)
    if name == "ANY":
        return True
    if name == "LITERAL":
        return bool(argument == ord(char))
    if name == "NOT_LITERAL":
        return bool(argument != ord(char))
    negated = any(str(kind) == "NEGATE" for kind, _ in argument)
    return any(_member(str(kind), value, char) for kind, value in argument) != negated


def _member(kind: str, value: Any, char: str) -> bool:
    if kind == "LITERAL":
        return bool(value == ord(char))
    if kind == "RANGE":
        return bool(value[0] <= ord(char) <= value[1])
    return kind == "CATEGORY" and re.match(_CATEGORIES[str(value)], char) is not None
