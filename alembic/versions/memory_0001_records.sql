-- pgvector is used where it is and never required: "create extension" may fail for want of
-- privilege (42501), of support (0A000) or of the files (58P01), and nothing else is forgiven.
do $$
begin
    if not exists (select from pg_catalog.pg_extension where extname = 'vector') then
        create extension vector;
    end if;
exception
    when insufficient_privilege or feature_not_supported or undefined_file then
        raise notice 'pgvector is not available: vectors are ranked in the client';
end $$;

-- Statistics are a copy of the data that DELETE does not reach, and "set statistics 0" does not
-- remove samples taken before: so it comes first. Queries are written to hold without them.
alter table memory.records
    alter column tenant_key set statistics 0,
    alter column text set statistics 0,
    alter column metadata set statistics 0,
    alter column redacted set statistics 0,
    alter column embedding set statistics 0,
    alter column record_key set statistics 0,
    alter column embedding set storage external;

alter table memory.record_subjects
    alter column tenant_key set statistics 0,
    alter column subject_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.subjects
    alter column tenant_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.provenance alter column tenant_key set statistics 0;

alter table memory.postings
    alter column tenant_key set statistics 0,
    alter column term set statistics 0;

alter table memory.tenants alter column tenant_key set statistics 0;

alter table memory.tenant_counts alter column tenant_key set statistics 0;

-- Postings are read by index-only scans, which need a visibility map that inserts alone outdate.
alter table memory.postings set (autovacuum_vacuum_insert_scale_factor = 0.02);

insert into memory.installation default values;
