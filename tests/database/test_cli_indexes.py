"""``memory indexes`` as an operator runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rawsql import Connection
from servers import Database
from terminals import MAIN, environment, piped


def run(*arguments: str, url: str, program: Sequence[str] = ()) -> tuple[int, str, str]:
    env = environment(url) | {"COLUMNS": "200"}
    done = piped("indexes", *arguments, env=env, program=program)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def listed(url: str) -> list[dict[str, Any]]:
    code, out, _ = run("list", "--json", url=url)
    found: list[dict[str, Any]] = json.loads(out)["indexes"]
    assert code == (not all(index["valid"] for index in found))
    return found


async def test_an_index_is_built_listed_maintained_and_dropped(
    database: Database, superuser: Connection
) -> None:
    url = database.owner_url
    assert listed(url) == []
    code, out, err = run("build", "3", "--m", "8", "--memory", "64MB", "--json", url=url)
    assert (code, err) == (0, "")  # no bar where nobody looks
    (built,) = json.loads(out)["indexes"]
    assert (built["name"], built["dimensions"], built["m"]) == ("records_hnsw_3", 3, 8)
    code, out, _ = run("build", "3", "--halfvec", url=url, program=MAIN)
    assert code == 0
    assert "records_hnsw_3_half" in out
    code, out, _ = run("maintain", url=url)
    assert code == 0
    assert out.startswith("2 rebuilt in ")
    assert [index["halfvec"] for index in listed(url)] == [False, True]
    await superuser.execute(
        "update pg_index set indisvalid = false"
        " where indexrelid = 'memory.records_hnsw_3_half'::regclass"
    )
    assert [index["valid"] for index in listed(url)] == [True, False]
    assert run("build", "3", url=url)[0] == 0
    assert [index["halfvec"] for index in listed(url)] == [False]
    assert run("drop", "3", url=url)[:2] == (0, "dropped\n")
    assert run("drop", "3", url=url)[:2] == (1, "there is none\n")


async def test_wrong_usage_and_a_role_without_the_right_say_so(database: Database) -> None:
    code, out, err = run("build", "2001", url=database.owner_url)
    assert (code, out) == (2, "")
    assert "dimensions: must be a whole number from 1 to 2,000" in err
    code, out, err = run("build", "3", url=database.app_url)
    assert (code, out) == (3, "")
    assert "lacks a right" in err
    assert listed(database.owner_url) == []
