"""Faults in what purges, isolates and grants: migrations 0009 and 0010."""

from __future__ import annotations

from edits import Edit, of, statements, trigger

CLAIMS = "test_cascade_artefacts test_claims_sql contract/test_claims contract/test_indexes"
DRAINS = (
    "test_leases test_isolation test_claims_sql contract/test_debts contract/test_hold_artefacts"
)
TENANTS = "test_isolation test_cascade"
# Of each kind of table one is enough: the loop that makes the policies is one.
ISOLATED = (
    "records",
    "record_subjects",
    "provenance",
    "postings",
    "subjects",
    "tombstones",
    "decisions",
    "artefacts",
    "purges",
    "tenants",
)

PURGING = [
    *of(
        "0009",
        "framed_hash",
        f"{CLAIMS} test_store_claims",
        ("octet_length(piece) || ':' || piece", "piece"),
    ),
    *trigger("0009", "artefact_added", "artefacts", "tenant", CLAIMS),
    *of(
        "0009",
        "artefact_added",
        f"{CLAIMS} test_cascade_bypasses test_races_sql",
        ("if found_sources <> cardinality(sources) then", "if false then"),
        ("offset 0 for no key update", "offset 0"),
        ("and r.xmin <> pg_current_xact_id()::xid offset 0", "and false offset 0"),
        ("offset 0 for key share", "offset 0"),
        ("        if exists (", "        if false and exists ("),
        (
            "memory.framed_hash(a.tenant_key, a.adapter, a.artefact_id, a.record_id::text)",
            "memory.framed_hash(a.tenant_key, a.adapter, a.artefact_id)",
        ),
    ),
    *of(
        "0009",
        "artefact_removed",
        CLAIMS,
        (" and x.claim_hash = lost.claim", ""),
        ("x.artefact_hash = lost.artefact_hash and ", ""),
    ),
    *statements(
        "0009",
        f"{CLAIMS} test_cascade_bypasses test_removals",
        "alter table memory.artefacts enable trigger unclaim",
        "drop trigger artefact_fixed on memory.artefacts",
        "alter table memory.artefacts enable trigger artefact_fixed",
    ),
    *of(
        "0009",
        "lock_artefacts",
        f"{CLAIMS} test_races_sql test_store_claims",
        ("for update", ""),
        ("order by a.record_id ", ""),
        ("a.adapter = owed.adapter\n            and ", ""),
    ),
    *of(
        "0009",
        "lease_purges",
        DRAINS,
        ("perform memory.check_tenant(tenant);", ""),
        ("if pg_current_xact_id_if_assigned() is not null then", "if false then"),
        ("\n            and not q.subject_hashes && holders", ""),
        ("s.tenant_key = tenant and s.held", "s.tenant_key = tenant"),
        (" skip locked", ""),
        ("\n            and (people is null or q.subject_hashes && people)", ""),
        ("or q.leased_until < started", "or true"),
        ("                or q.leased_until < started\n", ""),
        ("                or q.leased_pid <> all (living)\n", ""),
        ("                or q.leased_at < pg_postmaster_start_time()\n", ""),
        ("(not due_only or q.next_try_at is null or q.next_try_at <= started)", "true"),
        (" and f.attempts = (select min(x.attempts) from free as x)", ""),
        (
            "\n            and (q.leased_at is null or q.leased_at < coalesce(since, 'infinity'))",
            "",
        ),
        ("c.artefact_hash = memory.framed_hash(index_name, t.artefact_id)", "false"),
        ("a.tenant_key = tenant and a.adapter = index_name\n                        and ", ""),
    ),
    *of("0009", "lock_purges", DRAINS, (" for update", "")),
    *of(
        "0009",
        "settle_purges",
        DRAINS,
        ("perform memory.check_tenant(tenant);", ""),
        ("\n                and q.erasure_id = u.erasure", ""),
        ("perform memory.lock_purges(tenant, index_name, ids);", ""),
        (
            "q.adapter = index_name and q.artefact_id = u.id\n                and",
            "q.artefact_id = u.id and",
        ),
        ("count(*) from gone", "1 from gone"),
    ),
    *of(
        "0009",
        "defer_purges",
        DRAINS,
        ("perform memory.check_tenant(tenant);", ""),
        ("perform memory.lock_purges(tenant, index_name, ids);", ""),
        ("\n            and q.lease = token", ""),
        (" - (error_class is null)::integer", ""),
        ("coalesce(error_class, p.last_error)", "error_class"),
        (" + wait", ""),
    ),
]

ACCESS = [
    *(
        edit
        for table in ISOLATED
        for edit in statements(
            "0010", TENANTS, f"alter policy tenant on memory.{table} using (true)"
        )
    ),
    *statements(
        "0010",
        f"{TENANTS} test_decisions_sql",
        "alter policy tenant on memory.records using (tenant_key ="
        " (select current_setting('app.current_tenant', true)))",
        "alter policy tenant on memory.records using (tenant_key ="
        " current_setting('app.current_tenant', true))",
        "drop policy tenant on memory.records; create policy tenant on memory.records for select"
        " using (tenant_key = (select nullif(current_setting('app.current_tenant', true), '')));"
        " create policy writes on memory.records using (true)",
        "alter table memory.records no force row level security",
        "alter table memory.subjects no force row level security",
        "alter table memory.tombstones disable row level security",
        "alter policy owner_walks on memory.tenants to public",
        "drop policy owner_walks on memory.tenants",
    ),
    *statements(
        "0010",
        "test_claims_sql test_privileges test_isolation",
        "alter policy owner_only on memory.artefact_claims to public",
        "alter policy owner_only on memory.installation to public",
    ),
    *of(
        "0010",
        "refuse_truncate",
        "test_immutability",
        (
            "    raise exception 'TRUNCATE would erase without evidence' using errcode = 'ME007';",
            "    return null;",
        ),
    ),
    *statements(
        "0010",
        "test_immutability",
        "alter table memory.postings enable trigger no_truncate",
        "drop trigger no_truncate on memory.chain_heads",
    ),
    *of(
        "0010",
        "decision_kept",
        "test_decisions_kept test_isolation test_hijacks",
        ("lifted boolean := false;", "lifted boolean := true;"),
        ("perform set_config('app.current_tenant', old.tenant_key, true);", ""),
        ("perform set_config('app.current_tenant', coalesce(caller, ''), true);", ""),
        ("tg_relid not in ('memory.records'::regclass, 'memory.subjects'::regclass)", "false"),
        ("= 0;", ">= 0;"),
        ("order by d.seq desc", "order by d.seq"),
        (
            "values (old.held and not new.held, 'hold', 'release'),",
            "values (false, 'hold', 'release'),",
        ),
        ("(old.blocked and not new.blocked, 'block', 'readmit')", "(false, 'block', 'readmit')"),
        ("and d.subject_hash = old.subject_hash\n", "\n"),
        ("elsif tg_op = 'UPDATE' then", "elsif true then"),
    ),
    *statements(
        "0010",
        "test_decisions_kept test_hijacks",
        "alter table memory.records enable trigger hold_kept",
        "alter table memory.subjects enable trigger decision_kept",
        "alter table memory.subjects enable trigger decision_stays",
        "alter table memory.subjects enable trigger subject_fixed",
        "drop trigger decision_stays on memory.subjects",
        "drop trigger subject_fixed on memory.subjects",
    ),
    *of(
        "0010",
        "claim_installation",
        "test_store_errors contract/test_lifecycle test_cli",
        (
            "if exists (select from memory.installation where pepper_check is null) then\n"
            "        update memory.installation set pepper_check = check_value"
            " where pepper_check is null;",
            "if true then update memory.installation set pepper_check = check_value;",
        ),
        ("exists (select from memory.installation where pepper_check = check_value)", "true"),
    ),
    *of(
        "0010",
        "pepper_matches",
        "test_store_errors contract/test_lifecycle test_cli",
        ("i.pepper_check = check_value", "i.pepper_check is not null"),
    ),
    *statements(
        "0010",
        "test_privileges test_hijacks",
        "grant execute on function memory.erase to public",
        "grant execute on function memory.release to {app}",
        "grant execute on function memory.delete_records to {app}",
        "grant update (held) on memory.subjects to {app}",
        "grant insert (inherited) on memory.record_subjects to {app}",
        "grant insert (held) on memory.records to {app}",
        "grant delete on memory.provenance to {app}",
        "grant select on memory.subjects to {app}",
        "grant update (text) on memory.records to {app}",
        "grant insert on memory.decisions to {app}",
    ),
]

EDITS: list[Edit] = [*PURGING, *ACCESS]
