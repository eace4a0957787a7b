"""What an erasure took that does not say so, once a backup has brought it back."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import memory
from restores import backup, codes, opened, stream
from servers import Database
from terminals import environment, piped


@pytest.mark.parametrize("how", ["raw DELETE", "forget_record"])
async def test_who_was_erased_narrowly_and_is_back_leaves_neither_replay_nor_check_content(
    database: Database, tmp_path: Path, how: str
) -> None:
    async with opened(database) as service:
        home = service.for_tenant("acme")
        told = await home.remember(text="one", subject_keys="ann")
        bob = await home.remember(text="Bob", subject_keys="bob")
    with backup(database) as restored:
        if how == "raw DELETE":
            with psycopg.connect(database.app_url) as application:
                application.execute("select set_config('app.current_tenant', 'acme', true)")
                statement = "delete from memory.records where record_id = %s"
                application.execute(statement, [told.record.record_id])
        else:
            async with opened(database) as service:
                await service.forget_record("acme", record_id=told.record)
        lines = await stream(database)
        file = tmp_path / "tombstones.jsonl"
        file.write_text("\n".join(lines))
        env = environment(restored.owner_url, "p")
        done = await memory.replay(restored.owner_url, lines)
        assert (done.narrow, done.to_review, done.complete) == ({"record": 1}, 1, False)
        said = piped("tombstones", "replay", file, env=env)
        assert (said.returncode, b"1 people of them have records" in said.stderr) == (1, True)
        report = await memory.check(restored.owner_url, tombstones=lines)
        [fault] = [fault for fault in report.faults if fault.code == "narrow_not_repeated"]
        assert (fault.examples, report.ok) == ((str(told.record.record_id),), False)
        assert piped("check", "--tombstones", file, env=env).returncode == 1
        # Looked at and erased again, which the old stream does not show, and a new one does.
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            await home.forget_record(record_id=told.record)
            assert await home.get(record_id=bob.record) == bob.record
        done = await memory.replay(restored.owner_url, lines)
        assert (done.to_review, done.complete) == (0, True)
        assert await codes(restored, lines) == {"chain_lost"}
        assert await codes(restored, await stream(restored)) == set()
