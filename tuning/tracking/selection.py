"""`record_trials`: which trials of a study get a run in MLflow. The records themselves always keep all."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tuning.errors import DefinitionError
from tuning.records.schema import FINISHED, Record, StudyRecord, TrialRecord

AUTO_MODELS = 100


@dataclass(frozen=True, slots=True)
class Selection:
    """At most `limit` trials of each study, the best ones; None keeps all.

    >>> Selection.parse("top:5"), Selection.parse("all").limit, Selection.parse("none").limit
    (Selection(limit=5), None, 0)
    """

    limit: int | None

    @property
    def short(self) -> bool:
        """Whether runs hold only what somebody looks for among a million of them: where one trial of each is enough."""
        return self.limit == 1

    @staticmethod
    def parse(text: str) -> Selection:
        if text in ("all", "none"):
            return Selection(None if text == "all" else 0)
        match = re.fullmatch(r"top:([1-9]\d{0,8})", text)
        if match is None:
            raise DefinitionError(
                f"record_trials is {text!r}; it must be 'all', 'none' or 'top:K' with a whole number K, "
                "such as 'top:5'."
            )
        return Selection(int(match[1]))

    def best(self, trials: Iterable[TrialRecord], winner: int | None) -> list[TrialRecord]:
        """The chosen trials of one study: the winner first, then finished ones by score, then by number."""

        def rank(trial: TrialRecord) -> tuple[bool, bool, float, int]:
            scored = math.isfinite(trial.loss)
            last = trial.state != FINISHED or not scored
            return (trial.trial != winner, last, trial.loss if scored else 0.0, trial.trial)

        return sorted(trials, key=rank)[: self.limit]


def settled_models(text: str, winners: int) -> str:
    """`record_models` of a run that will not have more winners than that: what "auto" comes to, where that is sure."""
    return "all" if text == "auto" and winners <= AUTO_MODELS else text


def most_models(text: str) -> int | None:
    """`record_models`: "all", "none", or "auto", which is all of them up to a hundred customers.

    None is any number. A model costs 0.1 s in MLflow, hundreds of times what a trial costs.
    """
    limits = {"all": None, "none": 0, "auto": AUTO_MODELS}
    if text not in limits:
        raise DefinitionError(f"record_models is {text!r}; it must be 'auto', 'all' or 'none'.")
    return limits[text]


class UnfinishedStudies:
    """Trials of studies that are still running: which of them are among the best is known at the end only."""

    def __init__(self) -> None:
        self.records: dict[str, StudyRecord] = {}
        self.trials: defaultdict[str, dict[int, TrialRecord]] = defaultdict(dict)
        self.parts: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, part: str, records: Iterable[Record]) -> None:
        """Keep the records of a part; adding it again changes nothing."""
        for record in records:
            self.parts[record.study].add(part)
            if isinstance(record, StudyRecord):
                before = self.records.setdefault(record.study, record)
                self.records[record.study] = max(before, record, key=lambda each: each.trials)
            else:
                self.trials[record.study].setdefault(record.trial, record)

    def complete(self) -> list[str]:
        """The studies whose trials are all here."""
        return [name for name, record in self.records.items() if len(self.trials[name]) >= record.trials]

    def forget(self, studies: Iterable[str]) -> set[str]:
        """Drop studies that are written; the parts, from all batches, that held records of them."""
        parts: set[str] = set()
        for study in studies:
            self.records.pop(study, None)
            self.trials.pop(study, None)
            parts |= self.parts.pop(study, set())
        return parts

    def holds(self, part: str) -> bool:
        """True while a study waits for which this part has records."""
        return any(part in parts for parts in self.parts.values())
