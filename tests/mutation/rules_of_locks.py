"""Locks that are missing from what erases and decides: migrations 0005 to 0007.

A missing lock shows between two sessions only, so the tests are the slow ones.
"""

from __future__ import annotations

from edits import Edit, of

BESIDE = (
    "test_waiting_sql test_claims_sql test_cascade_bypasses test_hold_concurrency test_races_sql"
)

EDITS: list[Edit] = [
    *of("0005", "erase", BESIDE, ("perform memory.lock_records(batch.tenant, reached);", "")),
    *of("0005", "lock_records", BESIDE, (" for update", ""), (" order by u.id", "")),
    *of(
        "0006",
        "lock_closure",
        BESIDE,
        ("perform memory.lock_records(tenant, ids);", ""),
        (
            "grown := not dry_run and ids <> '{}';",
            "grown := not dry_run and locked = '{}' and ids <> '{}';",
        ),
        ("perform memory.lock_artefacts(tenant, ids);", ""),
    ),
    *of(
        "0006",
        "forget",
        BESIDE,
        (
            "deferred := memory.lock_subject(tenant, person_hash);",
            "deferred := exists (select from memory.subjects as s where s.tenant_key = tenant"
            " and s.subject_hash = person_hash and s.held);",
        ),
    ),
    *of(
        "0007",
        "hold",
        BESIDE,
        (
            "perform memory.lock_subject(tenant, subject_hash);",
            "insert into memory.subjects (tenant_key, subject_hash)"
            " values (tenant, hold.subject_hash) on conflict do nothing;",
        ),
    ),
    *of(
        "0007",
        "release",
        BESIDE,
        ("    perform from memory.tenants as t where t.tenant_key = tenant for update;\n", ""),
        ("    perform memory.lock_subject(tenant, subject_hash);\n", ""),
    ),
    *of(
        "0007",
        "readmit",
        BESIDE,
        ("    perform memory.lock_subject(tenant, subject_hash);\n", ""),
    ),
]
