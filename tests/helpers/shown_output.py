"""Whether what a page shows as printed is what is printed: columns and sentences, not figures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from tuning.notes import Note, NoteCode

# What may differ between a page and what is printed.
_FREE = {
    "run": r"-\d{8}-\d{6}-[0-9a-f]{4}",  # the end of its name
    "size": r"\d[\d.,]* [kMG]?B",
    "figure": r"[-+]?\d(?:[\d.,:]*\d)?",
    "name": r"'[^']*'",  # of a customer, a column
    "cut": "…",
    "space": " +",
}
_PIECE = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _FREE.items()))


def not_printed(shown: Iterable[str], printed: str) -> list[str]:
    """The lines that a page shows and that no line printed resembles.

    Figures, names in quotes and what stands for `…` may be others. The rows of a table count as its head does.
    """
    there = [line.strip() for line in printed.splitlines()]
    missing, in_table = [], False
    for line in shown:
        cells = re.split(r"\s{2,}", line.strip())
        in_table = in_table and (len(cells) >= 3 or not line.strip() or line.strip() == "…")
        if not line.strip(" …") or in_table:
            continue
        pattern = _pattern(line.strip())
        if any(pattern.fullmatch(each) for each in there):
            in_table = len(cells) >= 3
        else:
            missing.append(line)
    return missing


def _pattern(line: str) -> re.Pattern[str]:
    pieces, last = [], 0
    for found in _PIECE.finditer(line):
        pieces += [re.escape(line[last : found.start()]), ".*" if found["cut"] else _FREE[str(found.lastgroup)]]
        last = found.end()
    return re.compile("".join([*pieces, re.escape(line[last:])]))


def not_in_folder(shown: str, folder: Path) -> list[str]:
    """What a drawing of a folder names and is not there: its first line is the folder, the others begin with files.

    `<customer>` stands for any name, `…` for the rest of one.
    """
    first, *others = shown.splitlines()
    where = [path for path in folder.glob(_glob(first.strip(" /"))) if path.is_dir()]
    if not where:
        return [first]
    names = [name for line in others for name in re.split(r"\s{2,}", line.strip())[0].split(", ") if name]
    return [name for name in names if not any(list(path.glob(_glob(name.rstrip("/")))) for path in where)]


def _glob(path: str) -> str:
    return re.sub(r"<[^>]*>|…", "*", path)


class Noted(Protocol):
    """What has notes."""

    @property
    def notes(self) -> Iterable[Note]: ...


def codes_of(noted: Noted) -> list[NoteCode]:
    """The codes of a plan's or a result's notes."""
    return [note.code for note in noted.notes]


def note_texts(noted: Noted) -> list[str]:
    """The sentences of a plan's or a result's notes."""
    return [str(note) for note in noted.notes]
