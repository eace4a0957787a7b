-- What an installation of this revision consists of, one object a row: what memory.catalogue() is
-- to find. Long definitions are the first 128 bits of their SHA-256.
-- Literals that came with the release, not a snapshot in a table: a migration would take that of
-- whatever state it finds, and so bless damage done before an upgrade. They guard against accidents
-- and drift; an owner who means to deceive replaces them as freely as the rules.
-- A revision that changes an object creates the function anew; MEMORY_REGENERATE_GOLDEN=1 makes
-- tests/database/test_verify_manifest.py write the list instead of comparing it.
create function memory.manifest() returns table (kind text, name text, definition text)
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select m.kind, n.name, m.definition from (values
    ('check', '
        artefact_claims.artefact_hash_is_hash
    ', '(artefact_hash ~ ''^[0-9a-f]{64}$''::text)'),
    ('check', 'artefact_claims.claim_hash_is_hash', '(claim_hash ~ ''^[0-9a-f]{64}$''::text)'),
    ('check', '
        artefacts.adapter_bounded purge_receipts.adapter_bounded purges.adapter_bounded
    ', '((adapter <> ''''::text) AND (octet_length(adapter) <= 256))'),
    ('check', '
        artefacts.artefact_id_bounded purges.artefact_id_bounded
    ', 'aa629c7b15742aadd94e1a93cae7080a'),
    ('check', '
        artefacts.tenant_key_bounded chain_heads.tenant_key_bounded decisions.tenant_key_bounded
        pending_evidence.tenant_key_bounded postings.tenant_key_bounded
        provenance.tenant_key_bounded purge_receipts.tenant_key_bounded purges.tenant_key_bounded
        record_subjects.tenant_key_bounded records.tenant_key_bounded subjects.tenant_key_bounded
        tenant_counts.tenant_key_bounded tenants.tenant_key_bounded tombstones.tenant_key_bounded
    ', '((tenant_key <> ''''::text) AND (octet_length(tenant_key) <= 256))'),
    ('check', 'decisions.action_known', '1f181777accc6067ad48ef956276e581'),
    ('check', 'decisions.kinds_are_codes', '953c6df8402592793eba93b95df1b52a'),
    ('check', '
        decisions.reason_known pending_evidence.reason_known tombstones.reason_known
    ', '9ae811f37c9deafe7a65eb2c028b2b3d'),
    ('check', 'decisions.request_is_whole', '93a87f3c2a59b418b30b729988951b53'),
    ('check', 'decisions.scope_known', '2c3eea340cce6a09e11540de56fabe40'),
    ('check', '
        decisions.subject_hash_is_hash tombstones.subject_hash_is_hash
    ', '(subject_hash ~ ''^[0-9a-f]{64}$''::text)'),
    ('check', 'installation.only_one', 'singleton'),
    ('check', '
        pending_evidence.scope_known tombstones.scope_known
    ', 'ebf4359970d3bba3fa7372201303f465'),
    ('check', '
        pending_evidence.subject_hash_is_hash record_subjects.subject_hash_is_hash
        subjects.subject_hash_is_hash
    ', 'ed694e11cf0d7dc567a47eabc448188e'),
    ('check', 'postings.term_bounded', '((term <> ''''::text) AND (octet_length(term) <= 128))'),
    ('check', 'provenance.not_its_own_source', '(derived_id <> source_id)'),
    ('check', '
        purges.last_error_is_class
    ', '(last_error ~ ''^[A-Za-z_][A-Za-z0-9_.]{0,127}$''::text)'),
    ('check', 'record_subjects.subject_key_bounded', 'ec0bfce72baf119c1febc39c106ea856'),
    ('check', 'records.counts_positive', '((version > 0) AND (term_count >= 0))'),
    ('check', 'records.kind_is_code', '512eb760a99639a23739b25b3100aa6a'),
    ('check', 'records.metadata_is_object', '(jsonb_typeof(metadata) = ''object''::text)'),
    ('check', '
        records.origin_known
    ', '(origin = ANY (ARRAY[''remembered''::text, ''derived''::text]))'),
    ('check', 'records.record_key_bounded', '371725aee4744a1497bb10c3a2b0881b'),
    ('check', '
        records.text_bounded
    ', '((octet_length(text) >= 1) AND (octet_length(text) <= 65536))'),
    ('check', 'tombstones.counts_positive', '26a2392a45067c029f352a5ef1e37ab7'),
    ('check', 'tombstones.digest_is_hash', '3e48018310dcedd437ef8dc8a650d2b1'),
    ('check', 'tombstones.previous_is_hash', '277a3104194c65df11381c0747d86a7d'),
    ('collation', '
        artefact_claims.artefact_hash artefact_claims.claim_hash artefacts.adapter
        artefacts.artefact_id artefacts.tenant_key chain_heads.tenant_key decisions.subject_hash
        decisions.tenant_key pending_evidence.subject_hash pending_evidence.tenant_key
        postings.tenant_key postings.term provenance.tenant_key purge_receipts.adapter
        purge_receipts.tenant_key purges.adapter purges.artefact_id purges.subject_hashes
        purges.tenant_key record_subjects.subject_hash record_subjects.subject_key
        record_subjects.tenant_key records.embedding_model records.record_key records.tenant_key
        subjects.subject_hash subjects.tenant_key tenant_counts.tenant_key tenants.tenant_key
        tombstones.subject_hash tombstones.tenant_key
    ', 'C'),
    ('column', '
        artefact_claims.artefact_hash artefact_claims.claim_hash artefacts.adapter
        artefacts.artefact_id artefacts.tenant_key postings.tenant_key postings.term
        provenance.tenant_key purges.adapter purges.artefact_id purges.tenant_key
        record_subjects.subject_hash record_subjects.subject_key record_subjects.tenant_key
        records.kind records.origin records.tenant_key records.text subjects.subject_hash
        subjects.tenant_key tenant_counts.tenant_key tenants.tenant_key
    ', 'text not null'),
    ('column', '
        artefacts.record_id postings.record_id provenance.derived_id provenance.source_id
        purges.erasure_id record_subjects.record_id records.record_id
    ', 'uuid not null'),
    ('column', '
        artefacts.registered_at installation.installed_at purges.requested_at records.created_at
        records.occurred_at tenants.first_seen
    ', 'timestamp with time zone not null'),
    ('column', '
        installation.pepper_check purges.last_error records.embedding_model records.record_key
    ', 'text'),
    ('column', '
        installation.singleton record_subjects.inherited records.held subjects.blocked subjects.held
    ', 'boolean not null'),
    ('column', 'postings.frequency', 'smallint not null'),
    ('column', '
        postings.term_count purges.attempts records.term_count records.version
    ', 'integer not null'),
    ('column', 'purges.lease', 'uuid'),
    ('column', '
        purges.leased_at purges.leased_until purges.next_try_at records.expires_at
        records.superseded_at
    ', 'timestamp with time zone'),
    ('column', 'purges.leased_pid records.embedding_dims', 'integer'),
    ('column', 'purges.subject_hashes records.redacted', 'text[] not null'),
    ('column', 'records.embedding', 'real[]'),
    ('column', 'records.metadata', 'jsonb not null'),
    ('column', '
        tenant_counts.delta_id tenant_counts.records tenant_counts.terms
    ', 'bigint not null'),
    ('default', '
        artefacts.registered_at decisions.at installation.installed_at purge_receipts.purged_at
        purges.requested_at records.created_at records.occurred_at tenants.first_seen
    ', 'clock_timestamp()'),
    ('default', 'decisions.seq purge_receipts.seq tenant_counts.delta_id', 'a'),
    ('default', 'installation.singleton', 'true'),
    ('default', 'pending_evidence.xid', '(pg_current_xact_id())::text'),
    ('default', 'postings.frequency records.version', '1'),
    ('default', 'postings.term_count purges.attempts records.term_count', '0'),
    ('default', 'purges.subject_hashes records.redacted', '''{}''::text[]'),
    ('default', 'record_subjects.inherited records.held subjects.blocked subjects.held', 'false'),
    ('default', 'records.embedding_dims', 'cardinality(embedding)'),
    ('default', 'records.kind', '''episodic''::text'),
    ('default', 'records.metadata', '''{}''::jsonb'),
    ('default', 'records.origin', '''remembered''::text'),
    ('definer', '
        artefact_added artefact_removed claim_installation decision_kept defer_purges edge_added
        edge_kept erase forget hold lease_purges link_added link_kept pepper_matches readmit
        record_added record_complete release seal settle_purges sweep
    ', 'definer'),
    ('enabled', '
        artefacts.artefact_fixed artefacts.unclaim decisions.immutable pending_evidence.immutable
        pending_evidence.seal provenance.edge_fixed provenance.edge_kept purge_receipts.immutable
        record_subjects.link_fixed record_subjects.link_kept records.erase records.hold_kept
        records.identity_fixed subjects.decision_kept subjects.decision_stays subjects.subject_fixed
        tombstones.immutable
    ', 'A'),
    ('enabled', '
        artefacts.sources_exist provenance.inherit record_subjects.admit records.complete
        records.counted
    ', 'O'),
    ('evidence column', '
        chain_heads.digest chain_heads.tenant_key decisions.action decisions.subject_hash
        decisions.tenant_key pending_evidence.reason pending_evidence.scope
        pending_evidence.subject_hash pending_evidence.tenant_key pending_evidence.xid
        purge_receipts.adapter purge_receipts.tenant_key tombstones.digest tombstones.previous
        tombstones.reason tombstones.scope tombstones.subject_hash tombstones.tenant_key
    ', 'text not null'),
    ('evidence column', '
        chain_heads.seq decisions.seq pending_evidence.artefacts pending_evidence.derived
        pending_evidence.memories pending_evidence.provenance_edges purge_receipts.artefacts
        purge_receipts.seq tombstones.artefacts tombstones.derived tombstones.memories
        tombstones.provenance_edges tombstones.seq
    ', 'bigint not null'),
    ('evidence column', '
        decisions.at purge_receipts.purged_at tombstones.erased_at
    ', 'timestamp with time zone not null'),
    ('evidence column', 'decisions.erasure_id decisions.record_id', 'uuid'),
    ('evidence column', 'decisions.kinds decisions.reason decisions.scope', 'text'),
    ('evidence column', '
        pending_evidence.erasure_id purge_receipts.erasure_id tombstones.erasure_id
    ', 'uuid not null'),
    ('evidence column', 'tombstones.format', 'smallint not null'),
    ('foreign key', 'provenance.provenance_derived', 'ab92788ed7f20667be749ed30c359246'),
    ('foreign key', 'provenance.provenance_source', '77aa4fddd746979a64716e44e4def2f3'),
    ('foreign key', 'record_subjects.link_record', '9a39e7fc4c90e09cb4cf54d3e23bbb68'),
    ('function', 'access_offences', '48aa5eeff340a71dfa6bc8aa58aa10dd'),
    ('function', 'artefact_added', 'bb0ff63171753c5a98acbd5807c479ef'),
    ('function', 'artefact_removed', '7e8471d79698d65de25f66b9cd5cc804'),
    ('function', 'block', '79c46115c3706a7a54fb348f6408f0c8'),
    ('function', 'cascade_depth', 'deaa5e65535d48017e403680869e8e6e'),
    ('function', 'catalogue', '592d6d341a7f08cc92834d8356ec1e2b'),
    ('function', 'catalogue_offences', 'd7692f77f978de432dd61e99c1fca7e5'),
    ('function', 'check_tenant', '16d04bb98aba89be06dd93e9119c1e1a'),
    ('function', 'claim_installation', '3929a07821fa11aa8611810e02d87ef2'),
    ('function', 'closure', '5265fd1059c13ce7a00b99446d878394'),
    ('function', 'complete', 'd62607b6167007b6ef419a1f0da87ebe'),
    ('function', 'complete_requests', 'eb81f5d65f4095dc6df40adfd4a42536'),
    ('function', 'constraint_offences', '354117705017dab6d359321e6ed74f72'),
    ('function', 'count_closure', '3444064e978e93baaa755ccd04537518'),
    ('function', 'decide', 'f16be58e7a24dd44f18dd33b8b306b68'),
    ('function', 'decision_kept', '0f0dddca194ceb0f6dc7653f1a412011'),
    ('function', 'defer_purges', '08b7d7cc9a72195b4c751b465eae75ef'),
    ('function', 'delete_as', '8e0f444474d3ef360394952ed611c92c'),
    ('function', 'delete_records', '7d46c4783399eb68cce7290eec208953'),
    ('function', 'each', '4266f241f277c018f25db93ac5f8999c'),
    ('function', 'edge_added', '997d95b3556ba66d8b10c634061a7055'),
    ('function', 'edge_kept', '41d1210e90edb1123a8a31060e4ef20a'),
    ('function', 'erase', '0b28727e1369a2ca63825aa33fb18a7f'),
    ('function', 'first_places', '08489a304eb779143ca7ce8cd3fdf6d2'),
    ('function', 'flag_records', 'a1c7cc8a964fc0853c0c73908a57b2cb'),
    ('function', 'forget', 'e760a80b3164e75398146b079a7ed0a6'),
    ('function', 'framed_hash', 'cb6dbad9da027b41588061b89fe5553f'),
    ('function', 'grant_app', '24fbac409e8907b66df22f8217d22845'),
    ('function', 'grant_auditor', '8be0a62385a03b7ebf669cd231bb4bac'),
    ('function', 'grant_operator', '28ae942b411fd7fba186148b7e500b5f'),
    ('function', 'grants', 'a4ae12ae67c9914e988a02939c800a80'),
    ('function', 'guarded', 'e78ae506dafb419674d0ef92a04e4e0b'),
    ('function', 'hash_of', '36b6a787103832a7d4cf5dd10ee10ed0'),
    ('function', 'held_among', 'baa4971390864fc75109b09bac6dc30a'),
    ('function', 'hold', '67e2db74cd1cd706358673016104ccc9'),
    ('function', 'index_offences', '912e9ebcbaa225bf517e8cf9fe22f5d7'),
    ('function', 'installation_state', '68d326a7c74807f40743ed53585c534d'),
    ('function', 'label', 'ed31936d444dc1decab5355459dc75a1'),
    ('function', 'lease_purges', 'ca9fc3bd86208e7dd062878423e1a4ad'),
    ('function', 'link_added', '0df7c82c8626956ff2aff0838daa9994'),
    ('function', 'link_kept', 'df7e7f3453312c31cec645e28a3dfc1a'),
    ('function', 'lock_artefacts', '5c1f4c346e7ef8556e0315fd465b5658'),
    ('function', 'lock_closure', '87d2a11f1d7f19e02f8d8b7ac2badd79'),
    ('function', 'lock_purges', '78ecf2604c0b990459dc2f3c5bd30caf'),
    ('function', 'lock_records', '51d77db88b83f3298037db36ad2743dd'),
    ('function', 'lock_subject', '85a429eda1569086adbe86693c0a01c7'),
    ('function', 'owing', '14d07f69c5c4e38656183d5aa044d3d6'),
    ('function', 'pass_on', 'fb7230e512ca97e7add8921dc9b4e7ba'),
    ('function', 'pepper_matches', '0d3c5c65a1b61fb8704d207036ff8044'),
    ('function', 'readmit', 'c26266b1c4383268a684279d8b9890ca'),
    ('function', 'record_added', 'baf585ec410bfce0027e253c790eb877'),
    ('function', 'record_complete', '1cfd669a30ddc694110e0651248cceea'),
    ('function', 'refuse_change', '1345e9d177b2f3e3a40823bb9fda4265'),
    ('function', 'refuse_identity', 'e403caea4fcf10f23bacef8bdc716ceb'),
    ('function', 'refuse_truncate', 'b27496cf63ecb7ebfc536fed6f50dabc'),
    ('function', 'release', 'd093b1892c36e28662c5018b483ca6f9'),
    ('function', 'request', '8309c719c365469d25a54699f5c4e606'),
    ('function', 'require_fresh_snapshots', 'b87bad36419bc2bd8f2e489175f1c89a'),
    ('function', 'revision', '
text
sql
i
f
f

    select ''memory_0013'';
'),
    ('function', 'roots', '781fb2ffa38e0c92084aadf0bf345d53'),
    ('function', 'seal', 'd916ae29c8da7a989b4c6579181d9ff9'),
    ('function', 'seal_now', 'd90b23c81375b6eaad40f31b7a776720'),
    ('function', 'settle', 'b9d624ded2fcab5969cc1e28b4e4d822'),
    ('function', 'settle_purges', '27a22334c8851c6350393c093585d8a8'),
    ('function', 'spare', 'c9cf7b5912dbf08810a8f13ee78a36d6'),
    ('function', 'strays', '5fe962be20407e38720a00a85868a5b0'),
    ('function', 'subjects_of', 'a3d1a5f5d71df69ae5fe95b6df12163e'),
    ('function', 'sweep', 'a803ebb75aa2fcd2e43a23e9d836d4a2'),
    ('function', 'sweep_batch', '8f6d91cec90e32da5a456a65d4d167b8'),
    ('function', 'table_offences', '8eb1373003d55572e95eb1c22291fd22'),
    ('function', 'tombstone_digest', '1e07648e44eaa8951b2f2f0c83ac8567'),
    ('function', 'unregister', '7dda466d433afe0772cc3677306aab37'),
    ('function', 'verify_install', '65208c185a26da25d5dadf70a9a6f459'),
    ('function', 'witness', '381c157e40ed03e0de57e4f8e1a5d007'),
    ('function', 'write_records', 'e388fe0106526a8c25915ef48f68f567'),
    ('index', '
        artefacts_record postings_record
    ', 'btree (tenant_key, record_id) WHERE (record_id IS NOT NULL)'),
    ('index', 'decisions_erasure', 'btree (tenant_key, erasure_id) WHERE (erasure_id IS NOT NULL)'),
    ('index', 'decisions_person', 'btree (tenant_key, subject_hash, seq)'),
    ('index', 'provenance_sources', 'ac8062ff66938762519c9e3fff3606f5'),
    ('index', 'purge_receipts_erasure purges_erasure', 'btree (tenant_key, erasure_id)'),
    ('index', 'purges_next', 'btree (tenant_key, adapter, attempts, artefact_id)'),
    ('index', 'record_subjects_person', 'cb3380203149a2e49ee86e730663e1bb'),
    ('index', 'records_current', '62b9066d023414797136e0fc56e62ab3'),
    ('index', 'records_due', '59a5de036eabdecc5e792d3ec4d4b78b'),
    ('index', 'records_embedded', '98cc1b4f59c5fbc5e85287aff30639e6'),
    ('index', 'records_recent', 'btree (tenant_key, occurred_at) INCLUDE (record_id)'),
    ('index', 'records_versions', 'd3a4ed165be308bda4495e02d42ed0e3'),
    ('index', 'subjects_held', 'btree (tenant_key, subject_hash) WHERE held'),
    ('index', 'tombstones_person', 'btree (tenant_key, subject_hash, erasure_id)'),
    ('policy', 'artefact_claims.owner_only installation.owner_only', 't * {owner} true'),
    ('policy', '
        artefacts.tenant chain_heads.tenant decisions.tenant pending_evidence.tenant postings.tenant
        provenance.tenant purge_receipts.tenant purges.tenant record_subjects.tenant records.tenant
        subjects.tenant tenant_counts.tenant tenants.tenant tombstones.tenant
    ', '5ca0e499e93b23787d30637c942569dc'),
    ('policy', 'tenants.owner_walks', 't r {owner} true'),
    ('primary key', 'artefact_claims.artefact_claims_pkey', '(artefact_hash, claim_hash)'),
    ('primary key', 'artefacts.artefacts_pkey', '(tenant_key, adapter, artefact_id, record_id)'),
    ('primary key', 'chain_heads.chain_heads_pkey tenants.tenants_pkey', '(tenant_key)'),
    ('primary key', '
        decisions.decisions_pkey purge_receipts.purge_receipts_pkey tombstones.tombstones_pkey
    ', '(tenant_key, seq)'),
    ('primary key', 'installation.installation_pkey', '(singleton)'),
    ('primary key', '
        pending_evidence.pending_evidence_pkey
    ', '(tenant_key, xid, erasure_id, subject_hash, reason, scope)'),
    ('primary key', '
        postings.postings_pkey
    ', '(tenant_key, term, record_id) INCLUDE (frequency, term_count)'),
    ('primary key', 'provenance.provenance_pkey', '(tenant_key, derived_id, source_id)'),
    ('primary key', 'purges.purges_pkey', '(tenant_key, adapter, artefact_id)'),
    ('primary key', 'record_subjects.record_subjects_pkey', '(tenant_key, record_id, subject_key)'),
    ('primary key', 'records.records_pkey', '(tenant_key, record_id)'),
    ('primary key', 'subjects.subjects_pkey', '(tenant_key, subject_hash)'),
    ('primary key', 'tenant_counts.tenant_counts_pkey', '(tenant_key, delta_id)'),
    ('revision', 'memory_0013', ''),
    ('statistics', '
        artefacts.artefact_id artefacts.tenant_key chain_heads.tenant_key decisions.subject_hash
        decisions.tenant_key pending_evidence.subject_hash pending_evidence.tenant_key
        postings.tenant_key postings.term provenance.tenant_key purge_receipts.tenant_key
        purges.artefact_id purges.subject_hashes purges.tenant_key record_subjects.subject_hash
        record_subjects.subject_key record_subjects.tenant_key records.embedding records.metadata
        records.record_key records.redacted records.tenant_key records.text subjects.subject_hash
        subjects.tenant_key tenant_counts.tenant_key tenants.tenant_key tombstones.subject_hash
        tombstones.tenant_key
    ', '0'),
    ('storage', 'records.embedding', 'external'),
    ('table', '
        artefact_claims artefacts chain_heads decisions installation pending_evidence postings
        provenance purge_receipts purges record_subjects records subjects tenant_counts tenants
        tombstones
    ', 'table'),
    ('trigger', 'artefacts.artefact_fixed', '7cebc6061551cd9e2cb49d157d127c5e'),
    ('trigger', 'artefacts.sources_exist', 'f1ae8911c3ac5e518d15400e01e435cb'),
    ('trigger', 'artefacts.unclaim', 'f0538008cd9f1b52a21103b34f728006'),
    ('trigger', '
        decisions.immutable purge_receipts.immutable tombstones.immutable
    ', 'b73ea0d16198b5d1cce784e824109ac7'),
    ('trigger', 'pending_evidence.immutable', '6b943bca5beee6d44e5110bcad9a8d75'),
    ('trigger', 'pending_evidence.seal', '7fa616172177ddce4b51b4d8c32fc72c'),
    ('trigger', 'provenance.edge_fixed', 'a637eb0a1bf61b6e41931b96a95a0952'),
    ('trigger', 'provenance.edge_kept', '6d34246cf0ae4a59ab4389204326ad80'),
    ('trigger', 'provenance.inherit', '0f0ec7c416f7cb7647bc09fe753ba76c'),
    ('trigger', 'record_subjects.admit', '056187e6d4e2d40b54389b943523a669'),
    ('trigger', 'record_subjects.link_fixed', 'ed87ad3cd480fdf2f4adf2b345b67d25'),
    ('trigger', 'record_subjects.link_kept', '2a09af49585de4f0af9cfe0079a80624'),
    ('trigger', 'records.complete', 'd382ac95d08747469f920f1d1e12d91b'),
    ('trigger', 'records.counted', '8a79556cde7d2678a7baaea577e1f1fe'),
    ('trigger', 'records.erase', '9bb49310e98714713f2c6220551092d3'),
    ('trigger', 'records.hold_kept', 'ef6a7c7c4a2d6296e24b1fbc55168e03'),
    ('trigger', 'records.identity_fixed', 'd7151647e585158e1b322f934a50cac3'),
    ('trigger', 'subjects.decision_kept', '439fd9b7229f380c98bbad91b6566d44'),
    ('trigger', 'subjects.decision_stays', '59633f8d9c76839247c1473f2fb0d07b'),
    ('trigger', 'subjects.subject_fixed', '24461ed9df432601464c6b96ce43dec8'),
    ('truncate', '
        artefact_claims.no_truncate artefacts.no_truncate chain_heads.no_truncate
        decisions.no_truncate installation.no_truncate pending_evidence.no_truncate
        postings.no_truncate provenance.no_truncate purge_receipts.no_truncate purges.no_truncate
        record_subjects.no_truncate records.no_truncate subjects.no_truncate
        tenant_counts.no_truncate tenants.no_truncate tombstones.no_truncate
    ', 'b143861c486dcd520f9da883f0d59218'),
    ('vector check', 'records.embedding_is_vector', '2cbb0f4531c01449fe81e2203f4f1aee')
    ) as m (kind, names, definition)
    cross join lateral regexp_split_to_table(btrim(m.names, E' \n'), '\s+') as n (name);
$$;

revoke execute on all functions in schema memory from public;
