"""Reasons that many customers share, counted, with what to do about each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tuning.notes import DataCode, EndCode, Note

EXAMPLES = 3  # ids that are named of a group
#: Part of a message → what to do, in this order. Only sentences without a code of their own are looked up by it.
ADVICE = {
    "fewer than min_rows": "Bring more rows; or lower min_rows, when so few are worth a model.",
    "at least two are needed": "There is nothing to tell apart yet. Leave these customers out, or wait for more rows.",
    "there is nothing to predict": "There is nothing to learn yet. Leave these customers out, or wait for more rows.",
    "is not there": "Put the file back, or correct data; then resume the run.",
    "cannot be read": "Repair the file, or set csv and encoding as it is written; then resume the run.",
    "the baseline's column": "Correct this column of predictions, or leave the rows out with prepare.",
    "is empty": "Fill the file or take it away; then resume the run.",
    "set `encoding`": "Set encoding to the one that the file is written in.",
    "not among the columns": "Rename the column in this customer's file, or derive it with prepare.",
    "no usable feature": "The columns are empty, constant or ids. Bring others, or derive them with prepare.",
    "is not defined in any": "Choose another metric or split: the folds of these customers are too small for this one.",
    "more than limits.": DataCode.OVER_LIMIT.advice,
    "none has joined them within": EndCode.NO_PLACE.advice,
    "in a folder that all nodes share": EndCode.SHORTAGE_OF_FOLDER.advice,
    "has ended its worker": EndCode.QUARANTINED.advice,
    "the model could not be saved": EndCode.UNSAVED_MODEL.advice,
    "the data has changed": DataCode.DATA_CHANGED.advice,
    "counted when": "Start a new run where the data has changed; else write the key columns as text.",
    "goes beyond what the search rows hold": "See whether the column wraps, as a clock does at midnight, or means "
    "something else there. Derive a difference with prepare, or leave the column out with drop.",
    "the errors have a trend": "The target goes where no row has been. Predict its change, or its ratio to an earlier "
    "value, with prepare.",
    "a column may tell the target": "Leave the column out with drop, unless it is known before the target.",
    "where the search rows have": "See whether this target is right. If so, cap it with prepare, or take a metric that "
    "one row does not decide, such as mae.",
    "the target has moved": "These rows are of another time, or of another kind. Split by time, and search again with "
    "the newest rows.",
    "to learn from and": "Bring more rows; until then a constant is safer.",
    "nothing in the columns": "Look at the rows with the largest errors in the customer's own report, before the model "
    "is used.",
    "not finished": EndCode.NOT_FINISHED.advice,
    "no trial finished": EndCode.NO_TRIAL_FINISHED.advice,
}
OTHERWISE = "Run one of these customers alone, with --customer and --in-process: that prints the traceback."
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER = re.compile(r"\d[\d.,:e+-]*")


@dataclass
class Group:
    """Notes of one kind, which differ in names and numbers.

    Attributes:
        note: the first of them.
        count: how often they occur.
        examples: the first ids that have them.
    """

    note: Note
    count: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def advice(self) -> str:
        """What to do."""
        if "text" in self.note.values:
            return next((advice for part, advice in ADVICE.items() if part in str(self.note)), OTHERWISE)
        return self.note.advice or OTHERWISE


def grouped(notes: Iterable[tuple[str, Note]]) -> list[Group]:
    """Return groups of notes, the most frequent first. notes: pairs of a customer's id and a note."""
    found: dict[tuple[str, str], Group] = {}
    for customer, note in notes:
        text = str(note) if note.code is EndCode.RAISED or "text" in note.values else ""
        key = note.code.id, _NUMBER.sub("0", _QUOTED.sub("''", text))
        group = found.setdefault(key, Group(note))
        group.count += 1
        if len(group.examples) < EXAMPLES and customer not in group.examples:
            group.examples.append(customer)
    return sorted(found.values(), key=lambda group: -group.count)
