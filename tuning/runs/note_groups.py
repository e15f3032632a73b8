"""Notes of many customers in groups of one kind each: what a run says at its end, and what its report has tables of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from tuning.basics.wording import amount, some_names
from tuning.notes import Note, NoteCode, Shown, codes_shown, from_row
from tuning.records.tables import has_note

EXAMPLES = 3  # ids that are named of a group
MOST_NOTED = 10_000  # customers whose notes of a kind are counted


@dataclass
class Group:
    """Notes of one code, which differ in names and numbers.

    Attributes:
        note: the first of them.
        count: how often they occur.
        examples: the first ids that have them.
    """

    note: Note
    count: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """Who has such a note, the first of them, and what to do."""
        more = f" and {self.count - len(self.examples):,} more" if self.count > len(self.examples) else ""
        who = f"{amount(self.count, 'customer')} ({some_names(self.examples)}{more})"
        return f"{who}: {str(self.note).rstrip('.')}. {self.note.advice}".rstrip()


def grouped(notes: Iterable[tuple[str, Note]]) -> list[Group]:
    """Return groups of notes, the most frequent first. notes: pairs of a customer's id and a note."""
    found: dict[tuple[NoteCode, str], Group] = {}
    for customer, note in notes:
        group = found.setdefault((note.code, note.subject if note.code.by_subject else ""), Group(note))
        group.count += 1
        if len(group.examples) < EXAMPLES and customer not in group.examples:
            group.examples.append(customer)
    return sorted(found.values(), key=lambda group: -group.count)


def noted(rows: pa.Table, column: str) -> Iterator[tuple[str, Note]]:
    """Yield each customer with each note that a column has for it."""
    for customer, found in zip(rows["customer"].to_pylist(), rows[column].to_pylist(), strict=True):
        for note in found if isinstance(found, list) else filter(None, [found]):
            yield customer, from_row(note)


def notes_at_the_end(studies: pa.Table) -> list[Group]:
    """Return the notes on models that are worth a line at the end of a run, what speaks against a model first.

    studies: the customers' best ones, with the columns `customer` and `notes`.
    """
    codes = sorted(codes_shown(Shown.END), key=lambda code: int(code.value))
    found, groups = studies.filter(has_note(studies["notes"], *codes)), list[Group]()
    for code in codes:
        rows = found.filter(has_note(found["notes"], code))[:MOST_NOTED]
        groups += grouped((customer, note) for customer, note in noted(rows, "notes") if note.code is code)
    return groups
