"""Mutants that live because they change nothing that a caller, or an attacker, could see."""

from __future__ import annotations

FENCE = (
    "the row policies stand behind it: the function runs as the owner, whom they bind (FORCE), and"
    " in that tenant, so rows of another are not there to be found"
)

# Part of the survivor as it is printed, and why it is equivalent.
EXPLAINED: dict[str, str] = {
    # Python
    "slots=True": "slots save memory; a frozen object takes no other attribute with or without",
    "if len(self._behind) < _KEPT": "what is not kept is computed again, and is the same",
    "redaction/context.py:56 ReplaceBreakWithContinue": (
        "the answer is cut to that many pieces anyway; the break saves reading on"
    ),
    # SQL
    "tenant_key = tenant and ": FENCE,
    "cascade_depth: if at = roots then": (
        "an early answer: with nothing derived the walk takes no step and says nought too"
    ),
    "alter policy owner_only on": "no other role has a right on the table, which test_privileges"
    " compares: the policy is the second fence",
    "sweep: if reach = 'tenant' and next is null then": (
        "whoever needs a person's row makes it again; waiting for the last batch saves that"
    ),
}
