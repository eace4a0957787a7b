"""The tables as SQLAlchemy Core sees them. Executes nothing; the migrations create them.

``alembic check`` compares this package with the database. What Core cannot say (triggers,
policies, grants, storage, statistics targets) stands in the ``.sql`` files beside the revisions.
"""

from memory.schema.columns import metadata
from memory.schema.evidence import (
    artefact_claims,
    artefacts,
    chain_heads,
    decisions,
    pending_evidence,
    purge_receipts,
    purges,
    tombstones,
)
from memory.schema.records import (
    installation,
    postings,
    provenance,
    record_subjects,
    records,
    subjects,
    tenant_counts,
    tenants,
)

__all__ = [
    "artefact_claims",
    "artefacts",
    "chain_heads",
    "decisions",
    "installation",
    "metadata",
    "pending_evidence",
    "postings",
    "provenance",
    "purge_receipts",
    "purges",
    "record_subjects",
    "records",
    "subjects",
    "tenant_counts",
    "tenants",
    "tombstones",
]
