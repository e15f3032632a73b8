"""Notes: what a run has found out, as values. The catalogue has their words, which are made where they are shown."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, cast
from unicodedata import is_normalized

from tuning.basics.documents import Json
from tuning.basics.wording import amount, csv_settings, duration, name_list, separator_text, some_names, value_text


class Shown(Enum):
    """Where a note is worth a line."""

    PLAN = "in a plan"
    END = "at the end of a run"
    CUSTOMER = "only on the customer's own page"


class NoteCode(Enum):
    """A kind of note: its sentence, what to do about it, and where it is worth a line. Each theme has a subclass.

    A member is called with the values that its sentence names, and makes a `Note`. In a sentence, `{subject!r}` is the
    subject's name, and a value may have a form of `FORMS`: `{rows:of row}` is "1 row" or "2 rows".

    by_subject: whether notes with other subjects are counted apart, where reasons of many customers are counted.
    """

    def __new__(cls, *_: object) -> NoteCode:
        code = object.__new__(cls)
        code._value_ = len(cls.__members__)  # by its sentence, one of two with the same would be the other's alias
        return code

    def __init__(self, text: str, advice: str = "", shown: Shown = Shown.CUSTOMER, by_subject: bool = False) -> None:
        self.text, self.advice, self.shown, self.by_subject = text, advice, shown, by_subject

    @property
    def id(self) -> str:
        """The name of the code in records, JSON and HTTP."""
        return self.name.lower()

    def __call__(self, subject: str = "", **values: object) -> Note:
        return Note(self, subject, values)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader should know, or the reason why something ended.

    Attributes:
        code: its kind.
        subject: the name of the column, trial, family, … that it is about.
        values: the figures and names of its sentence: texts, numbers, booleans, notes, or lists of them.
    """

    code: NoteCode
    subject: str = ""
    values: Json = field(default_factory=dict)

    def __str__(self) -> str:
        return sentence(self.code.text, self)

    def __hash__(self) -> int:
        return hash((self.code, self.subject, _json(self.values)))

    def __reduce__(self) -> tuple[Callable[..., Note], tuple[object, ...]]:
        return read, (self.code.id, self.subject, dict(self.values))

    @property
    def advice(self) -> str:
        """What to do about it; empty where there is nothing to do."""
        return sentence(self.code.advice, self)

    def to_dict(self) -> dict[str, object]:
        """Plain values for programs, with the sentence."""
        values = {name: plain(value) for name, value in self.values.items()}
        return {"code": self.code.id, "subject": self.subject, "values": values, "text": str(self)}

    def to_row(self) -> dict[str, str]:
        """The note as records hold it: a struct of texts, `values` as JSON."""
        return {"code": self.code.id, "subject": self.subject, "values": _json(self.values) if self.values else ""}


def read(code: str, subject: str, values: Mapping[str, object]) -> Note:
    """Return a note by the name of its code; `KeyError` for an unknown code."""
    return Note(codes()[code], subject, values)


def from_row(row: Mapping[str, str]) -> Note:
    """Return the note of a struct in records."""
    return read(row["code"], row["subject"], json.loads(row["values"], object_hook=_inner) if row["values"] else {})


def _inner(found: Json) -> object:
    """The note within another note's values."""
    return read(**found) if found.keys() == {"code", "subject", "values"} else found


@cache
def codes() -> dict[str, NoteCode]:
    """All codes of all themes, by their names."""
    import tuning.notes  # noqa: F401  # its themes are subclasses then

    return {code.id: code for theme in NoteCode.__subclasses__() for code in theme}


def codes_shown(where: Shown) -> tuple[NoteCode, ...]:
    """Return the codes that are worth a line there."""
    return tuple(code for code in codes().values() if code.shown is where)


def plain(value: object) -> object:
    """Return a value with notes as JSON holds it, with codes, values and sentences."""
    if isinstance(value, Note):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def from_plain(value: object) -> object:
    """Return the value of which `plain` has made this one."""
    if isinstance(value, list):
        return [from_plain(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    inner = {name: from_plain(each) for name, each in value.items()}
    if inner.keys() != {"code", "subject", "values", "text"}:
        return inner
    return read(str(inner["code"]), str(inner["subject"]), cast(Json, inner["values"]))


def ordered(found: Iterable[Note | None]) -> tuple[Note, ...]:
    """Return the notes that are there, each once, what is worth most first.

    Those that are worth a line at a run's end come before others, and those of a plan in the order of their codes.
    """
    return tuple(sorted(dict.fromkeys(filter(None, found)), key=_worth))


def _worth(note: Note) -> tuple[bool, int]:
    code = note.code
    return code.shown is not Shown.END, code.value if code.shown is Shown.PLAN else 0


def texts(notes: Iterable[Note]) -> str:
    """The sentences of notes in one cell of a table, as a sentence shows notes among its values."""
    return FORMS["all"](notes, "; ")


def sentence(text: str, note: Note) -> str:
    """A text of the catalogue with the note's values."""
    return _WORDS.vformat(text, (), {"subject": note.subject, **note.values})


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """A value of NumPy as one of Python, a note as an object; else its text."""
    if isinstance(value, Note):
        return {"code": value.code.id, "subject": value.subject, "values": value.values}
    return value.item() if hasattr(value, "item") else str(value)


#: The forms that a value may have in a sentence, with the argument behind the form's name.
FORMS: Mapping[str, Callable[[Any, str], str]] = {
    "of": amount,  # {rows:of row}: 1 row, 2 rows
    "count": lambda value, noun: amount(len(value), noun),  # {names:count customer}: 2 customers
    "seconds": lambda value, _: duration(value),
    "names": lambda values, most: name_list(values, int(most or 10)),  # {columns:names 4}: 'a', 'b'
    "all": lambda values, between: (between or ", ").join(map(str, values)),  # of notes
    "places": lambda values, _: some_names(values) or "nothing",
    "kind": lambda value, _: value if value == "text" else f"{value}s",  # of a column's values
    "separator": lambda options, _: separator_text(options),
    "settings": lambda options, _: csv_settings(options),
    "after": lambda values, before: f"{before}{name_list(values)}" if values else "",  # {customers:after  of }
    "then": lambda value, before: f"{before}{value}" if value else "",  # {why:then ; most often: }
    # Groups of names, with what cannot be seen of them: 'bos ' and 'BOS', 'a' and 'A'.
    "spelled": lambda value, _: ", ".join(" and ".join(map(_spelled, names)) for names in value),
}


def _spelled(name: str) -> str:
    return repr(name) if is_normalized("NFC", name) else ascii(name)


class _Words(string.Formatter):
    """`str.format` with `FORMS`; a number without a form is rounded as in tables."""

    def format_field(self, value: object, format_spec: str) -> str:
        form, _, argument = format_spec.partition(" ")
        if form in FORMS:
            return FORMS[form](value, argument)
        if isinstance(value, Note):
            return str(value).rstrip(".")
        if not format_spec:
            return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value_text(value)
        return str(super().format_field(value, format_spec))


_WORDS = _Words()
