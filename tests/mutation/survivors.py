"""Mutants that live because they change nothing that a caller, or an attacker, could see."""

from __future__ import annotations

FENCE = (
    "the row policies stand behind it: the function runs as the owner, whom they bind (FORCE), and"
    " in that tenant, so rows of another are not there to be found"
)
MORE_ROWS = (
    "how many rows an index is asked for trades time for nearness; where they do not suffice all"
    " candidates are compared"
)
CACHED = "a statement that is not kept is composed again, and is the same"
ONE_ROW = "the statement yields one row, which is the last one too"

# Part of the survivor as it is printed, and why it is equivalent.
EXPLAINED: dict[str, str] = {
    # Python
    "slots=False": "slots save memory; a frozen object takes no other attribute with or without",
    "if not TYPE_CHECKING:": "what annotations name is imported too, and nothing else is changed",
    "ranking.py:129 NumberReplacer: low, high": "of no scores none is scaled",
    "entry[0] * gates": (
        "opens every detector where one is open: gates save time, and a detector behind a closed"
        " one finds nothing"
    ),
    'chunk[-1] is "."': "CPython has one object for each string of one ASCII character",
    "if len(self._behind) < _KEPT": "what is not kept is computed again, and is the same",
    "redaction/context.py:56 ReplaceBreakWithContinue": (
        "the answer is cut to that many pieces anyway; the break saves reading on"
    ),
    "backwards.py:200 ReplaceBreakWithContinue": (
        "of what stands further back nothing counts either: each cue there meets the same test"
    ),
    "backwards.py:97 AddNot": (
        "whether a number that words name is looked at once more; the words are read then too"
    ),
    'Said("", -1, personal) if _ends_a_sentence': "where there is no cue its distance is not read",
    "digit >> begin < 2": "a short cut: the pattern behind it allows a gap of two",
    "digit - begin < 3": "a short cut: the pattern behind it allows a gap of two",
    "max(0, start - 14), start)": "twelve letters and what stands before them are all it reads",
    "len(lengths) <= 1 or": "there is no number without a digit",
    "for state in range( 11)]": "no check comes to an eleventh state",
    "_LONGEST = 49": "no code that is looked for by its name is longer than 48 with its gaps",
    "backwards.py:149 ReplaceTrueWithFalse": "a short cut: the long way round says the same",
    "engine.py:157 ReplaceBreakWithContinue": "each further round finds nothing again",
    "engine.py:246 ReplaceTrueWithFalse": "what was taken lies in itself: it settles itself",
    "return rivals[ -1].start <= start": (
        "a detector runs once more, though those that stood in its way are hidden: no text is known"
        " in which it then finds something else"
    ),
    "_SLICE = -0.998": "the event loop is looked at more often",
    "LOGIN = 2 << 14": "the bit of another gate: opened in vain, as with all gates",
    "% 5 - (5 if": "an index into ten values: -5 is 5, counted from the end",
    "range( 7, 20)": "no number of fewer than eight digits is asked about",
    "account, range( 8, 19)": "eight digits are asked about behind a plus, which no account has",
    "chunk.islower() and chunk[1:].islower()": "the long way round gives the same pieces",
    "text[start % 1 : start] not in _ALONE": "a short cut: the pattern behind it decides",
    "at - 129) : at": "a name of 128 letters and the space before the @ are all that is read",
    "while len(rows) != count:": "it grows by one",
    '"=" * (+len(part) % 4)': "more padding than is due is no error",
    "_ROUNDS = 9": "a bound on the work: no text is known that needs so many rounds",
    "len(term) * 5 <= TERM_BYTES": "a short cut: cutting what is short enough leaves it whole",
    'name[0] > "_"': "a method's name begins with a small letter, which is above the underscore",
    "zip(items, contents, embedded, strict=False)": (
        "a content and a vector were made of each item just before"
    ),
    "zip(wanted, found, strict=False)": "the embedder was held to one vector for each text",
    'strategy > "hybrid"': "all other names of strategies come after it in the alphabet",
    "_PAIRS: Final = 10000001": "a bound that no answer comes near",
    "taken_at=rows[ -1].leased_at": "one statement leased them, at one time",
    "found[ -1].fetched": "each row says the same",
    "rows[ -1].way if rows": "each row says the same",
    "rows[0].skipped if rows else 1": "where nothing is found they are counted apart",
    "return int(rows[ -1].others)": ONE_ROW,
    "RemoveDecorator:   ->  def _across(": CACHED,
    "RemoveDecorator:   ->  def _by_person(": CACHED,
    "RemoveDecorator:   ->  def _pool(": CACHED,
    "zip(numbers, drafts, strict=False)": "the numbers were counted from the drafts",
    'return _decided(rows[ -1], "readmit")': ONE_ROW,
    "completed = rows[ -1].receipts": ONE_ROW,
    "return bool(rows[ -1][0])": ONE_ROW,
    "return bool(rows[0][ -1])": "the statement has one column",
    "self._measured_at = 1.0": "it is read only once something was measured, which sets it",
    "return max( 101, 4 * limit)": MORE_ROWS,
    "return max(100, 3 * limit)": MORE_ROWS,
    "return min( 999, max(200, depth(limit)))": MORE_ROWS,
    # SQL
    "lease_purges: a.tenant_key = tenant and a.adapter = index_name and": (
        "the hash that is compared names the tenant and the index, so rows of another match nothing"
    ),
    "tenant_key = tenant and ": FENCE,
    "seal: and p.xid = new.xid": (
        "no row of another transaction is there: each is sealed when its own commits, or rolled"
        " back; the key begins with it"
    ),
    "artefact_removed: x.artefact_hash = lost.artefact_hash and": (
        "a claim's hash is of one registration; the artefact's is beside it for the index"
    ),
    "lock_artefacts: order by a.record_id": (
        "rows are read by the table's key, which ends with the record: they come in that order; it"
        " is said so that no other plan may lock in another"
    ),
    "cascade_depth: if at = roots then": (
        "an early answer: with nothing derived the walk takes no step and says nought too"
    ),
    "alter policy owner_": "no other role has a right on the table, which test_privileges"
    " compares: the policy is the second fence",
    "sweep: if reach = 'tenant' and next is null then": (
        "whoever needs a person's row makes it again; waiting for the last batch saves that"
    ),
}
