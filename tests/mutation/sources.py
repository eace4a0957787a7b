"""Mutants of the library's Python, by cosmic-ray's operators."""

from __future__ import annotations

import ast
import itertools
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from parts import Part
from servers import ROOT

Position = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One change to one module."""

    path: Path
    operator: str
    occurrence: int
    start: Position

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    @cache  # noqa: B019 - the mutants of one run, which are few
    def source(self) -> str:
        code = mutate_code(self.path.read_text(), get_operator(self.operator)(), self.occurrence)
        if code is None:
            raise RuntimeError(f"{self} does not apply")
        return str(code)

    @property
    def compiles(self) -> bool:
        """Whether it is Python: the star of keyword-only parameters is taken for a product."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile(self.source(), "", "exec", dont_inherit=True)
            except SyntaxError:
                return False
        return True

    def __str__(self) -> str:
        """The changed lines, before and after."""
        before, after = self.path.read_text().splitlines(), self.source().splitlines()
        changed = [
            f"{old.strip()}  ->  {new.strip()}"
            for old, new in zip(before, after, strict=False)
            if old != new
        ]
        place = f"{self.path.relative_to(ROOT)}:{self.start[0]}"
        return f"{place} {self.operator.partition('/')[2]}: {''.join(changed[:1])}"


@cache
def mutants(path: Path) -> list[Mutant]:
    """Every mutant of a module, annotations aside: nothing reads them at run time."""
    source = path.read_text()
    annotations = list(_annotations(ast.parse(source)))
    tree = get_ast(source)
    found = []
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue
        positions = (
            position for node in ast_nodes(tree) for position in operator().mutation_positions(node)
        )
        for occurrence, (start, _) in enumerate(positions):
            if not any(first <= start < last for first, last in annotations):
                found.append(Mutant(path, name, occurrence, start))
    return found


def _annotations(tree: ast.AST) -> Iterator[tuple[Position, Position]]:
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            note = getattr(node, field, None)
            if isinstance(note, ast.expr):
                end = (note.end_lineno or 0, note.end_col_offset or 0)
                yield (note.lineno, note.col_offset), end


def sampled(part: Part, seed: int, size: int | None) -> list[Mutant]:
    """One mutant at each of so many places; all mutants, without a size.

    By places, since a comparison has ten mutants and an "and" has one.
    """
    every = [mutant for path in part.paths for mutant in mutants(path)]
    if size is None:
        return [mutant for mutant in every if mutant.compiles]
    chance = random.Random(f"{seed} {part.name}")  # noqa: S311 - a sample, not a secret
    places: dict[tuple[Path, Position], list[Mutant]] = {}
    for mutant in every:
        places.setdefault((mutant.path, mutant.start), []).append(mutant)
    order = sorted(places)
    chance.shuffle(order)
    chosen = (chance.choice(places[place]) for place in order)
    able = (mutant for mutant in chosen if mutant.compiles)
    return sorted(itertools.islice(able, size), key=lambda mutant: (mutant.path, mutant.start))
