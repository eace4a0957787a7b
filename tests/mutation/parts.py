"""Which parts of the library are mutated, and the quick tests that should kill their mutants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from servers import ROOT

IN_MEMORY = ("-k", "not postgres and not without_pgvector and not through_pgbouncer")
POSTGRES = (
    "-k",
    "not in_memory and not postgres_16 and not without_pgvector and not through_pgbouncer",
)


@dataclass(frozen=True)
class Part:
    """Modules that the same tests look at; ``sample`` is how many of their mutants are tried."""

    name: str
    modules: str
    sample: int
    unit: str = ""
    contract: str = ""
    database: str = ""

    @property
    def paths(self) -> list[Path]:
        found = []
        for module in self.modules.split():
            path = ROOT / "memory" / module
            found += sorted(path.glob("*.py")) if path.is_dir() else [path]
        return [path for path in found if path.name != "__init__.py"]

    @property
    def tests(self) -> list[str]:
        """What pytest is told to run, the quickest first."""
        named = (("unit", self.unit), ("contract", self.contract), ("database", self.database))
        paths = [ROOT / "tests" / kind / name for kind, names in named for name in names.split()]
        found = [str(path if path.is_dir() else path.with_suffix(".py")) for path in paths]
        return found + list(POSTGRES if self.database else IN_MEMORY)


VERBS = """
    test_remember test_derive test_forget test_forget_record test_forget_tenant test_hold
    test_hold_requests test_hold_artefacts test_block test_debts test_expire test_postpone
    test_versions test_keyed test_claims test_indexes test_lineage test_timeline test_evidence
    test_certificates test_lifecycle test_ends_of_time test_keys test_recall_keyword
    test_recall_vectors test_recall_words test_recall_hybrid test_recall_after_changes test_filters
    test_own_ids test_postings test_export
"""
PARTS = [
    Part(
        name="validation",
        modules="validation.py metadata.py",
        sample=30,
        unit="test_validation",
        contract="test_validation test_remember test_plugs_checked test_keys test_filters"
        " test_injection test_expire",
    ),
    Part(
        name="tokens",
        modules="tokens.py",
        sample=12,
        unit="test_tokens",
        contract="test_recall_words test_recall_keyword test_postings",
    ),
    Part(
        name="tombstones",
        modules="tombstones.py",
        sample=20,
        unit="test_tombstones test_types test_proofs test_certificates test_certificates_refused",
        contract="test_evidence test_certificates",
    ),
    Part(
        name="fingerprint",
        modules="fingerprint.py",
        sample=15,
        unit="test_fingerprint",
        contract="test_evidence test_forget test_indexes",
    ),
    Part(
        name="lineage",
        modules="lineage.py",
        sample=10,
        unit="test_lineage",
        contract="test_forget test_lineage",
    ),
    Part(
        name="ranking",
        modules="ranking.py",
        sample=20,
        unit="test_ranking",
        contract="test_recall_keyword test_recall_vectors test_recall_words test_recall_hybrid",
    ),
    Part(
        name="versions",
        modules="versions.py",
        sample=12,
        unit="test_versions test_types",
        contract="test_versions test_keyed test_timeline",
    ),
    Part(
        name="redaction",
        modules="redaction",
        sample=50,
        # Without what measures times or tries texts at random: those who live would cost a minute.
        unit="redaction/test_edges_of_numbers redaction/test_edges_of_codes redaction/test_kinds"
        " redaction/test_engine redaction/test_walk redaction/test_found redaction/test_benign"
        " redaction/test_checks",
    ),
    Part(
        name="in-memory store",
        modules="stores/in_memory",
        sample=50,
        unit="test_types test_shelf",
        contract=VERBS,
    ),
    Part(
        name="service",
        modules="service",
        sample=50,
        unit="test_service test_service_defaults test_service_plugs test_reprs",
        contract="test_plugs_checked test_validation test_embedder_faults test_after_commit"
        f" {VERBS} test_redaction test_messages telemetry",
    ),
    Part(
        name="index definitions",
        modules="repositories/hnsw.py repositories/measuring.py",
        sample=30,
        unit="test_indexed test_types",
    ),
    Part(
        name="searches in SQL",
        modules="repositories/across.py repositories/conditions.py"
        " repositories/hybrid.py repositories/meaning.py"
        " repositories/scoring.py repositories/searches.py repositories/weighing.py"
        " repositories/words.py",
        sample=40,
        unit="test_in_process test_indexed test_types",
        contract="test_filters test_keyed test_recall_vectors test_recall_keyword"
        " test_recall_words test_recall_hybrid",
        database="test_store_statements test_store_ways hnsw test_recall_hnsw",
    ),
    Part(
        name="other SQL",
        modules="repositories/decisions.py repositories/erasures.py repositories/exports.py"
        " repositories/graphs.py repositories/purges.py repositories/reads.py"
        " repositories/reembedding.py repositories/rows.py repositories/tenancy.py"
        " repositories/writes.py",
        sample=40,
        unit="test_types",
        contract="test_remember test_derive test_forget test_hold test_evidence test_keyed"
        " test_timeline test_export test_indexes test_debts test_claims test_postpone"
        " test_lineage test_versions test_block test_expire test_forget_tenant"
        " test_recall_words test_recall_vectors",
        database="test_store_statements test_store_errors test_reembed joined",
    ),
    Part(
        name="PostgreSQL store",
        modules="stores/postgres",
        sample=40,
        unit="test_database test_in_process test_indexed",
        contract="test_remember test_keyed test_recall_vectors test_recall_keyword"
        " test_recall_hybrid test_forget test_export test_indexes test_expire test_derive"
        " test_forget_tenant test_hold test_debts test_postpone test_versions",
        database="test_store_statements test_store_measuring test_store_errors test_store_retries"
        " test_store_recall hnsw joined",
    ),
]
