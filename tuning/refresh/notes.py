"""Notes on single customers: collected, and said as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tuning.basics.wording import some_names


def add_note(notes: dict[str, str], customer: str, text: str) -> None:
    """Add a note to those of a customer."""
    if text:
        notes[customer] = "; ".join(filter(None, (notes.get(customer), text.removesuffix("."))))


def note_lines(notes: Mapping[str, str]) -> Iterator[str]:
    """A line for each note, with the customers that it is of."""
    customers: dict[str, list[str]] = {}
    for name, text in sorted(notes.items()):
        customers.setdefault(text, []).append(name)
    for text, names in customers.items():
        yield f"note: {some_names(names)}: {text}"
