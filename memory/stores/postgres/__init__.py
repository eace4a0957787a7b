"""The store on PostgreSQL: isolation, cascade and evidence are the database's."""

from __future__ import annotations

from memory.stores.postgres.erasing import Erasing
from memory.stores.postgres.exporting import Exporting
from memory.stores.postgres.holding import Holding
from memory.stores.postgres.reading import Reading
from memory.stores.postgres.writing import Writing

__all__ = ["PostgresStore"]


class PostgresStore(Writing, Reading, Erasing, Holding, Exporting):
    """Keeps records in PostgreSQL 15 to 18, with or without pgvector.

    ``source`` is a URL or an ``AsyncEngine`` of the host's (asyncpg); an engine made from a URL is
    closed by :meth:`close`. Connect as a role that ``memory.grant_app`` was called for, never as
    a superuser: a superuser bypasses row level security. ``pooler=True`` is for PgBouncer in
    transaction mode; a host's own engine must then be set up for it.

    With a URL, ``pool_size`` connections are kept, 5 if nothing is said, and ``max_overflow`` more,
    10, are opened and closed as they are needed; each is at most 1,000. Calls beyond both wait 30
    seconds for one, then raise ``StoreUnavailableError``. An engine has a pool of its own: with
    one, either is an ``InvalidInputError``.

    With ``url`` leading to your database:

    >>> from memory import Memory, PostgresStore
    >>> async with Memory(PostgresStore(url), subject_pepper=pepper) as service:
    ...     told = await service.remember("shop", text="Dana moved", subject_keys="customer:dana")
    ...     (await service.capabilities()).store
    'postgres'
    """
