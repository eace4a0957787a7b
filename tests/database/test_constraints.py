"""What the columns admit: keys, terms, vectors, codes."""

from __future__ import annotations

from uuid import UUID

import asyncpg
import pytest

from rawsql import (
    Connection,
    acting,
    hash_of,
    insert_record,
    link,
    living,
    post,
    register,
    remember,
)

LEASE = UUID(int=1)
VECTORS = {
    "empty": "'{}'",
    "two dimensions": "'{{1,2},{3,4}}'",
    "two dimensions of one row": "'{{1,2}}'",
    "lower bound 5": "'[5:6]={1,2}'",
    "lower bound 0": "'[0:1]={1,2}'",
    "null element": "'{1,null}'",
    "all null": "'{null}'",
    "nan": "'{1,NaN}'",
    "infinity": "'{1,Infinity}'",
    "minus infinity": "'{-Infinity,1}'",
    "zero": "'{0,0,0}'",
    "minus zero": "'{-0,0}'",
    "all tiny": "array_fill(1e-30::real, array[384])",
    "denormal": "'{1e-42}'",
    "all huge": "array_fill(1e30::real, array[384])",
    "one huge": "'{1,1e30}'",
    "one hugely negative": "'{1,-1e30}'",
    "too many": "array_fill(1::real, array[16001])",
}
GOOD_VECTORS = {
    "plain": ("'{1,2}'", 2),
    "with a zero": ("'{0,1}'", 2),
    "negative": ("'{-1,0}'", 2),
    "one value": ("'{0.5}'", 1),
    "small": ("'{1e-15}'", 1),
    "large": ("'{1e15}'", 1),
    "most values": ("array_fill(1::real, array[16000])", 16000),
    "none": ("null", None),
}
INSERT = (
    "insert into memory.records (tenant_key, record_id, text, embedding)"
    " values ($1, gen_random_uuid(), 'x', {}::real[]) returning embedding_dims"
)


@pytest.mark.parametrize("vector", VECTORS)
async def test_what_is_not_a_vector_is_refused(
    client: Connection, tenant: str, vector: str
) -> None:
    async with acting(client, tenant):
        with pytest.raises(asyncpg.CheckViolationError) as caught:
            async with client.transaction():
                await client.fetchval(INSERT.format(VECTORS[vector]), tenant)
        assert caught.value.constraint_name == "embedding_is_vector"
        # Row security hides the row from the message; a superuser's would quote it.
        assert caught.value.detail is None
        await remember(client, tenant, "ann")


@pytest.mark.parametrize("vector", GOOD_VECTORS)
async def test_a_vector_is_kept_with_its_size(client: Connection, tenant: str, vector: str) -> None:
    value, dims = GOOD_VECTORS[vector]
    transaction = client.transaction()
    await transaction.start()
    await client.execute("select set_config('app.current_tenant', $1, true)", tenant)
    assert await client.fetchval(INSERT.format(value), tenant) == dims
    await transaction.rollback()


KEYS = {
    "tenant": ("tenant_key_bounded", 256),
    "subject": ("subject_key_bounded", 1024),
    "record": ("record_key_bounded", 1024),
    "term": ("term_bounded", 128),
    "adapter": ("adapter_bounded", 256),
    "artefact": ("artefact_id_bounded", 1024),
}


async def write(connection: Connection, tenant: str, what: str, key: str) -> None:
    """A record in which one key is the given one."""
    if what == "tenant":
        tenant = key
    async with acting(connection, tenant or "none"):
        record_id = await insert_record(connection, tenant)
        await link(connection, tenant, record_id, key if what == "subject" else "ann")
        await post(connection, tenant, record_id, key if what == "term" else "word")
        await register(
            connection,
            tenant,
            key if what == "artefact" else "vector-1",
            record_id,
            adapter=key if what == "adapter" else "index",
        )
        await connection.execute(
            "update memory.records set record_key = $1 where record_id = $2",
            key if what == "record" else None,
            record_id,
        )


@pytest.mark.parametrize("what", KEYS)
async def test_a_key_that_is_empty_or_overlong_is_refused_and_the_longest_is_kept(
    connect, tenant: str, what: str
) -> None:
    # A superuser, for a tenant key that is refused by the policy before any other rule.
    connection = await connect("superuser" if what == "tenant" else "app")
    constraint, most = KEYS[what]
    # Not all letters alike, or compression would make any key fit an index.
    ascii_key = hash_of(tenant, what) * (most // 64) + "k" * (most % 64)
    for wrong in ("", ascii_key + "x", "鍵" * (most // 3 + 1), "é" * (most // 2) + "x"):
        with pytest.raises(asyncpg.CheckViolationError) as caught:
            await write(connection, tenant, what, wrong)
        assert caught.value.constraint_name == constraint
    for right in (ascii_key, "é" * (most // 2), "鍵" * (most // 3), "k"):
        await write(connection, tenant, what, right)


async def test_a_thousand_characters_fit_a_subject_key(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    key = (hash_of(tenant, "long") * 16)[:1000]
    async with acting(client, tenant):
        await remember(client, tenant, key)
    assert len(await living(inspector, tenant)) == 1


@pytest.mark.parametrize(
    ("column", "value", "constraint"),
    [
        ("kind", "Episodic", "kind_is_code"),
        ("kind", "", "kind_is_code"),
        ("kind", "1st", "kind_is_code"),
        ("kind", "-x", "kind_is_code"),
        ("kind", "a fact about Ramesh", "kind_is_code"),
        ("kind", "episodic\n", "kind_is_code"),
        ("kind", "é", "kind_is_code"),
        ("kind", "k" * 64, "kind_is_code"),
        ("origin", "imagined", "origin_known"),
        ("text", "", "text_bounded"),
        ("text", "é" * 32769, "text_bounded"),
        ("metadata", "[]", "metadata_is_object"),
        ("metadata", "null", "metadata_is_object"),
        ("metadata", '"text"', "metadata_is_object"),
        ("version", 0, "counts_positive"),
        ("term_count", -1, "counts_positive"),
    ],
)
async def test_a_record_keeps_to_its_codes_and_bounds(
    client: Connection, tenant: str, column: str, value: object, constraint: str
) -> None:
    row = {"text": "x", "kind": "k" * 63, "metadata": "{}", "version": 1}
    insert = (
        "insert into memory.records (tenant_key, record_id, {}) values ($1, gen_random_uuid(), {})"
    )

    async def write(**changed: object) -> None:
        values = row | changed
        places = ", ".join(f"${n}" for n, _ in enumerate(values, 2))
        await client.execute(insert.format(", ".join(values), places), tenant, *values.values())

    transaction = client.transaction()
    await transaction.start()
    await client.execute("select set_config('app.current_tenant', $1, true)", tenant)
    with pytest.raises(asyncpg.CheckViolationError) as caught:
        async with client.transaction():
            await write(**{column: value})
    assert caught.value.constraint_name == constraint
    await write()
    await write(text="é" * 32768)
    await transaction.rollback()


async def test_one_version_of_a_record_key_is_current(
    client: Connection, tenant: str, neighbour: str
) -> None:
    insert = (
        "insert into memory.records (tenant_key, record_id, text, record_key)"
        " values ($1, gen_random_uuid(), 'x', 'invoice') returning record_id"
    )
    async with acting(client, tenant):
        first = await client.fetchval(insert, tenant)
        await link(client, tenant, first, "ann")
        with pytest.raises(asyncpg.UniqueViolationError) as caught:
            async with client.transaction():
                await client.execute(insert, tenant)
        assert caught.value.constraint_name == "records_current"
        assert caught.value.detail is None
        await client.execute(
            "update memory.records set superseded_at = now() where record_id = $1", first
        )
        await link(client, tenant, await client.fetchval(insert, tenant), "ann")
    async with acting(client, neighbour):
        await link(client, neighbour, await client.fetchval(insert, neighbour), "ann")


@pytest.mark.parametrize("error", ["Timeout for customer:ann", "", "a" * 129, "404", "Ann\n"])
async def test_only_the_class_of_an_error_is_kept(
    client: Connection, connect, tenant: str, error: str
) -> None:
    owner = await connect("owner")
    async with acting(owner, tenant):
        await owner.execute(
            "insert into memory.purges (tenant_key, adapter, artefact_id, erasure_id, lease)"
            " values ($1, 'index', 'vector-1', gen_random_uuid(), $2)",
            tenant,
            LEASE,
        )
    defer = f"select memory.defer_purges($1, 'index', '{{vector-1}}', '{LEASE}', $2, '1 minute')"
    with pytest.raises(asyncpg.CheckViolationError) as caught:
        async with acting(client, tenant):
            await client.execute(defer, tenant, error)
    assert caught.value.constraint_name == "last_error_is_class"
    async with acting(client, tenant):
        await client.execute(defer, tenant, "httpx.ReadTimeout")


async def test_installation_and_claims_keep_hashes_only(inspector: Connection) -> None:
    insert = "insert into memory.artefact_claims values ($1, $2)"
    transaction = inspector.transaction()
    await transaction.start()
    for pair in (("vector-1", "0" * 64), ("0" * 64, "acme")):
        with pytest.raises(asyncpg.CheckViolationError):
            async with inspector.transaction():
                await inspector.execute(insert, *pair)
    await inspector.execute(insert, "0" * 64, "1" * 64)
    with pytest.raises(asyncpg.UniqueViolationError):
        async with inspector.transaction():
            await inspector.execute("insert into memory.installation default values")
    with pytest.raises(asyncpg.CheckViolationError):
        async with inspector.transaction():
            await inspector.execute("insert into memory.installation values (false)")
    await transaction.rollback()
