"""Reasons that many customers share, counted, with what to do about each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tuning.notes import Note, NoteCode

EXAMPLES = 3  # ids that are named of a group


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


def grouped(notes: Iterable[tuple[str, Note]]) -> list[Group]:
    """Return groups of notes, the most frequent first. notes: pairs of a customer's id and a note."""
    found: dict[tuple[NoteCode, str], Group] = {}
    for customer, note in notes:
        group = found.setdefault((note.code, note.subject if note.code.by_subject else ""), Group(note))
        group.count += 1
        if len(group.examples) < EXAMPLES and customer not in group.examples:
            group.examples.append(customer)
    return sorted(found.values(), key=lambda group: -group.count)
