"""Faults in what writes records, links and edges: migrations 0001 to 0004."""

from __future__ import annotations

from edits import Edit, of, statements, trigger

SNAPSHOTS = "test_evidence test_decisions_sql test_cascade_bypasses"
KEPT = "test_removals"
SUBJECTS = "test_subject_rules test_subject_flags"
EDGES = f"test_provenance_rules {SUBJECTS} test_waiting_sql"
LINKS = f"{SUBJECTS} test_decisions_sql test_waiting_sql test_hold_concurrency"
CHAIN = "test_evidence test_evidence_chain"

FIRST = [
    *of(
        "0001",
        "check_tenant",
        "test_isolation test_decisions_sql",
        ("tenant is distinct from current_setting('app.current_tenant', true)\n        or ", ""),
        ("\n        or coalesce(tenant, '') = ''", ""),
    ),
    *of(
        "0001",
        "require_fresh_snapshots",
        SNAPSHOTS,
        ("not in ('read committed', 'read uncommitted')", "= 'none'"),
        ("'read uncommitted')", "'read uncommitted', 'repeatable read')"),
        ("'read uncommitted')", "'read uncommitted', 'serializable')"),
    ),
    *of(
        "0001",
        "hash_of",
        f"test_decisions_sql {SUBJECTS} test_evidence",
        ("return coalesce(known, given);", "return coalesce(given, known);"),
        ("person is null or coalesce", "coalesce"),
        ("l.tenant_key = tenant and ", ""),
    ),
    *of(
        "0001",
        "lock_subject",
        "test_holds_sql test_waiting_sql test_hold_concurrency",
        (" for update", ""),
        ("return coalesce(known.held, false);", "return false;"),
    ),
]

EVIDENCE = [
    *of(
        "0002",
        "refuse_change",
        "test_immutability",
        (
            "    raise exception 'rows of %.% are never changed', tg_table_schema, tg_table_name\n"
            "        using errcode = 'ME010';",
            "    return null;",
        ),
    ),
    *statements(
        "0002",
        "test_immutability test_decisions_sql test_evidence_chain test_debts_sql",
        "alter table memory.tombstones enable trigger immutable",
        "alter table memory.decisions enable trigger immutable",
        "alter table memory.purge_receipts enable trigger immutable",
        "alter table memory.pending_evidence enable trigger immutable",
    ),
    *statements(
        "0002", "test_cascade_bypasses", "alter table memory.pending_evidence enable trigger seal"
    ),
    *statements(
        "0002",
        "test_immutability",
        "drop trigger immutable on memory.pending_evidence",
        "drop trigger immutable on memory.purge_receipts",
    ),
    *trigger(
        "0002",
        "seal",
        "pending_evidence",
        "new.tenant_key",
        f"test_cascade {CHAIN}",
    ),
    *of(
        "0002",
        "seal",
        CHAIN,
        ("seq = h.seq + 1", "seq = h.seq + 2"),
        (" and p.subject_hash = new.subject_hash", ""),
        (" and p.erasure_id = new.erasure_id", ""),
        (" and p.xid = new.xid", ""),
        (" and p.reason = new.reason", ""),
        (" and p.scope = new.scope", ""),
        ("if stone.seq = 1 then", "if false then"),
        (
            "set digest = stone.digest where",
            "set digest = h.digest from memory.chain_heads as h"
            " where h.tenant_key = proof.tenant_key and chain_heads.",
        ),
        (
            "returning h.seq, h.digest into stone.seq, stone.previous",
            "returning h.seq, '' into stone.seq, stone.previous",
        ),
    ),
    *of(
        "0002",
        "tombstone_digest",
        "test_evidence_chain",
        ("octet_length(convert_to(f.field, 'UTF8')) || ':' || f.field", "f.field"),
        ("        stone.previous,\n", ""),
        (" * 1000000", " * 1000"),
    ),
    *of(
        "0002",
        "unregister",
        "test_cascade_artefacts test_claims_sql contract/test_hold_artefacts",
        (" and a.adapter = owed.adapter", ""),
        ("owed.subject_hashes || o.hashes", "owed.subject_hashes"),
        ("p.tenant_key = tenant and p.adapter = o.adapter", "p.tenant_key = tenant"),
    ),
]

LINEAGE = [
    *statements(
        "0003",
        "test_provenance_rules test_removals",
        "drop trigger identity_fixed on memory.records; create trigger identity_fixed before update"
        " of tenant_key, record_id, origin on memory.records for each row when (old.tenant_key is"
        " distinct from new.tenant_key or old.record_id is distinct from new.record_id)"
        " execute function memory.refuse_identity()",
        "drop trigger identity_fixed on memory.records; create trigger identity_fixed before update"
        " of tenant_key, origin on memory.records for each row when (old.tenant_key is"
        " distinct from new.tenant_key or old.origin is distinct from new.origin)"
        " execute function memory.refuse_identity()",
        "drop trigger link_fixed on memory.record_subjects",
        "drop trigger edge_fixed on memory.provenance",
        "alter table memory.records enable trigger identity_fixed",
        "alter table memory.record_subjects enable trigger link_fixed",
        "alter table memory.record_subjects enable trigger link_kept",
        "alter table memory.provenance enable trigger edge_fixed",
        "alter table memory.provenance enable trigger edge_kept",
    ),
    *trigger(
        "0003",
        "record_added",
        "records",
        "batch.tenant_key",
        "test_isolation_sessions test_store_counts",
    ),
    *of(
        "0003",
        "record_added",
        "test_store_counts",
        ("batch.n, batch.terms)", "batch.n, 0)"),
        ("values (batch.tenant_key, batch.n,", "values (batch.tenant_key, 1,"),
    ),
    *trigger("0003", "record_complete", "records", "new.tenant_key", "test_provenance_rules"),
    *of(
        "0003",
        "record_complete",
        "test_provenance_rules",
        ("subjectless := not exists (", "subjectless := false and not exists ("),
        ("sourceless := not exists (", "sourceless := false and not exists ("),
        ("new.origin = 'derived' then", "true then"),
    ),
    *trigger("0003", "link_kept", "record_subjects", "batch.tenant", KEPT),
    *of("0003", "link_kept", KEPT, ("if exists (", "if false and exists (")),
    *trigger("0003", "edge_kept", "provenance", "batch.tenant", KEPT),
    *of(
        "0003",
        "edge_kept",
        KEPT,
        ("if exists (", "if false and exists ("),
        ("array_agg(distinct g.derived_id)", "array_agg(distinct g.source_id)"),
    ),
    *trigger("0003", "edge_added", "provenance", "tenant", EDGES),
    *of(
        "0003",
        "edge_added",
        EDGES,
        (" for share", ""),
        (" for share", " for key share"),
        ("if found_sources <> cardinality(sources) then", "if false then"),
        ("and r.origin <> 'derived' offset 0", "and false offset 0"),
        ("l.subject_hash, true", "l.subject_hash, false"),
        ("if source_held then", "if false then"),
        ("and s.held offset 0", "offset 0"),
        (
            "and s.record_id = a.source_id offset 0\n        ) as l",
            "and s.record_id = a.source_id and not s.inherited offset 0\n        ) as l",
        ),
    ),
]

SUBJECTS = [
    *trigger(
        "0004", "link_added", "record_subjects", "batch.tenant", f"test_isolation_sessions {LINKS}"
    ),
    *of(
        "0004",
        "link_added",
        LINKS,
        ("if barred then", "if false then"),
        ("offset 0 for key share", "offset 0"),
        ("l.subject_hash < a.subject_hash", "false"),
        ("l.subject_hash > a.subject_hash", "false"),
        (
            "l.tenant_key = batch.tenant and l.subject_key = a.subject_key\n"
            "                        and l.subject_hash <",
            "l.tenant_key = batch.tenant\n                        and l.subject_hash <",
        ),
        ("\n                and current_setting('transaction_isolation') = 'read committed'", ""),
        ("if batch.direct is distinct from batch.hashes then", "if false then"),
        ("perform memory.pass_on(batch.tenant, batch.ids, batch.hashes, held);", ""),
        ("batch.hashes, held);", "batch.hashes, false);"),
        (
            "if not exists (select from memory.tenants",
            "if false and not exists (select from memory.tenants",
        ),
    ),
    *of(
        "0004",
        "pass_on",
        f"{LINKS} test_races_sql",
        ("offset 0 for no key update", "offset 0"),
        ("if oldest > 0 and", "if false and"),
        ("if older is not null then", "if false then"),
        ("perform memory.flag_records(tenant, memory.held_among(tenant, ids), true);", ""),
        ("if held then", "if false then"),
        ("r.subject_hash, true from reach", "r.subject_hash, false from reach"),
        (
            "and e.source_id = r.record_id offset 0",
            "and e.source_id = r.record_id and e.source_id = any (ids) offset 0",
        ),
        ("if exists (", "if false and exists ("),
    ),
    *of(
        "0004",
        "flag_records",
        f"test_holds_sql test_decisions_kept {SUBJECTS}",
        ("held = coalesce(flag, kept.held)", "held = coalesce(flag, false)"),
        ("r.tenant_key = tenant and r.record_id", "r.record_id"),
    ),
    *of(
        "0004",
        "held_among",
        f"test_holds_sql {SUBJECTS} contract/test_hold contract/test_hold_requests",
        (" and s.held offset 0", " offset 0"),
        ("l.tenant_key = tenant and l.record_id", "l.record_id"),
    ),
]

EDITS: list[Edit] = [*FIRST, *EVIDENCE, *LINEAGE, *SUBJECTS]
