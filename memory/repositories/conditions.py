"""Filters as SQL: which are set decides the statement, their values stay parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from memory.ports import Filters

__all__ = ["Shape", "beyond", "candidates", "conditions", "values"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Which filters are set: the key under which a statement's text is kept."""

    subjects: bool
    every_subject: bool
    superseded: bool
    kinds: bool
    origins: bool
    since: bool
    until: bool
    metadata: bool
    where: bool
    keys: bool
    prefix: bool

    @property
    def narrow(self) -> bool:
        """See :attr:`memory.commands.Filters.narrow`."""
        return self.subjects or self.keys or self.prefix

    @classmethod
    def of(cls, filters: Filters) -> Shape:
        """Return the shape of these filters."""
        return cls(
            subjects=bool(filters.subject_keys),
            # All of one is any of one, and needs no counting.
            every_subject=filters.every_subject and len(filters.subject_keys) > 1,
            superseded=filters.superseded,
            kinds=bool(filters.kinds),
            origins=bool(filters.origins),
            since=filters.since is not None,
            until=filters.until is not None,
            metadata=filters.metadata is not None,
            where=bool(filters.where),
            keys=bool(filters.record_keys),
            prefix=filters.key_prefix is not None,
        )


def candidates(shape: Shape, *, first: int, joined: str = "") -> str:
    """Return the records ``r`` of tenant ``s.t`` within the filters, as ``... where ...``.

    With subjects only their records are read, by their keys; else with keys only the records of
    these. Parameters count from ``first``, as in :func:`values`; ``$2`` is the time.
    """
    source = "memory.records as r"
    if shape.narrow:
        narrowed = _of_subjects(shape, first) if shape.subjects else _of_keys(shape, first)
        source = f"""({narrowed}) as c
        cross join lateral (
            select r.* from memory.records as r
            where r.tenant_key = s.t and r.record_id = c.id offset 0
        ) as r"""
    return f"""{source}{joined}
        where r.tenant_key = s.t and {conditions(shape, first=first)}"""


def _of_subjects(shape: Shape, number: int) -> str:
    """Return the ids of the records about any of ``$number``, or about all of them."""
    counted = f"having count(*) >= cardinality(${number}::text[])" if shape.every_subject else ""
    return f"""
            select l.record_id as id
            from memory.each(${number}::text[]) as k (subject_key)
            cross join lateral (
                select l.record_id from memory.record_subjects as l
                where l.tenant_key = s.t and l.subject_key = k.subject_key offset 0
            ) as l
            group by l.record_id {counted}
        """


def _of_keys(shape: Shape, number: int) -> str:
    """Return the ids of the records under the keys ``$number``, or from there up to the next."""
    current = "" if shape.superseded else "and k.superseded_at is null"
    if not shape.keys:
        return f"""
            select k.record_id as id from memory.records as k
            where k.tenant_key = s.t and k.record_key >= ${number}::text
                and k.record_key < ${number + 1}::text {current} offset 0
        """
    return f"""
            select k.record_id as id
            from memory.each(${number}::text[]) as u (record_key)
            cross join lateral (
                select k.record_id from memory.records as k
                where k.tenant_key = s.t and k.record_key = u.record_key {current} offset 0
            ) as k
        """


# One parameter however many there are. Nothing found counts as null; "x.sign" is the order of two
# numbers or two strings, and null for anything else.
_WHERE: Final = """not exists (
            select from jsonb_array_elements(${}::text::jsonb) as w (item)
            cross join lateral (
                select coalesce(r.metadata #> array(
                    select p.step from jsonb_array_elements_text(w.item -> 0) as p (step)
                ), 'null') as found, w.item ->> 1 as operator, w.item -> 2 as wanted offset 0
            ) as v
            cross join lateral (
                select case
                    when jsonb_typeof(v.found) <> jsonb_typeof(v.wanted) then null
                    when jsonb_typeof(v.found) = 'number'
                        then sign((v.found #>> '{{}}')::numeric - (v.wanted #>> '{{}}')::numeric)
                    when jsonb_typeof(v.found) = 'string' then case
                        when (v.found #>> '{{}}') collate "C" < (v.wanted #>> '{{}}') then -1
                        when v.found = v.wanted then 0
                        else 1
                    end
                end as sign offset 0
            ) as x
            where case v.operator
                when '==' then v.found <> v.wanted
                when '!=' then v.found = v.wanted
                when '<' then x.sign < 0 is not true
                when '<=' then x.sign <= 0 is not true
                when '>' then x.sign > 0 is not true
                else x.sign >= 0 is not true
            end
        )"""


def beyond(prefix: str) -> str:
    """Return the least string that is greater than all that begin with ``prefix``, by code point.

    Of an empty prefix, one that is greater than every key.
    """
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return "\U0010ffff" * 257  # of 1,028 bytes; a key has 1,024 at most
    following = ord(kept[-1]) + 1
    # Surrogates are no characters.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)


def conditions(shape: Shape, *, first: int) -> str:
    """Return what a record ``r`` must be besides about its subjects; ``$2`` is the time.

    Parameters count from ``first``, as in :func:`values`.
    """
    templates = (
        (shape.keys, "r.record_key = any (${}::text[])"),
        (shape.prefix, "r.record_key >= ${}::text"),
        (shape.prefix, "r.record_key < ${}::text"),
        (shape.kinds, "r.kind = any (${}::text[])"),
        (shape.origins, "r.origin = any (${}::text[])"),
        (shape.since, "r.occurred_at >= ${}::timestamptz"),
        (shape.until, "r.occurred_at < ${}::timestamptz"),
        (shape.metadata, "r.metadata @> ${}::text::jsonb"),
        (shape.where, _WHERE),
    )
    wanted = [template for is_set, template in templates if is_set]
    found = ["(r.expires_at is null or r.expires_at > $2)"]
    if not shape.superseded:
        found.append("r.superseded_at is null")
    following = first + 1 if shape.subjects else first
    found += [template.format(number) for number, template in enumerate(wanted, following)]
    return " and ".join(found)


def values(filters: Filters) -> list[Any]:
    """Return the parameters of :func:`candidates`, in order; the time is not among them."""
    found: list[Any] = []
    if filters.subject_keys:
        found.append(list(filters.subject_keys))
    if filters.record_keys:
        found.append(list(filters.record_keys))
    if filters.key_prefix is not None:
        found += [filters.key_prefix, beyond(filters.key_prefix)]
    if filters.kinds:
        found.append(list(filters.kinds))
    if filters.origins:
        found.append(list(filters.origins))
    found += [moment for moment in (filters.since, filters.until) if moment is not None]
    if filters.metadata is not None:
        found.append(json.dumps(filters.metadata, ensure_ascii=False))
    if filters.where:
        triples = [(item.path, item.operator, item.value) for item in filters.where]
        found.append(json.dumps(triples, ensure_ascii=False))
    return found
