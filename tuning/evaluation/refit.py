"""A model whose configuration is known, fitted again: on the search rows for the test score, on all rows for keeping.

The configuration is a recorded trial's, or it was fixed before the study began (`tuning.evaluation.fixed`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tuning.evaluation.fixed import FixedMember
from tuning.evaluation.study_data import StudyData, parameters_of
from tuning.models.base import EncodedRows, Family, Model, Stage, SteppedFamily
from tuning.models.member import Member
from tuning.preprocessing.task import Prediction, Task
from tuning.records.schema import TrialRecord


class Refit(NamedTuple):
    """A model fitted on the search rows, what it says of the hold-out rows, and the seconds that each took."""

    member: Member
    prediction: Prediction
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0


@dataclass
class Refits:
    """The models of one study's trials, each fitted once."""

    data: StudyData
    _found: dict[int, Refit] = field(default_factory=dict)

    def of(self, record: TrialRecord) -> Refit:
        """Return a trial's model."""
        if record.trial not in self._found:
            self._found[record.trial] = refitted(FixedMember.of(record), self.data)
        return self._found[record.trial]


def refitted(fixed: FixedMember, data: StudyData) -> Refit:
    """Return the model of a configuration; that of the pool, for which the run has paid, takes no time."""
    if (pooled := data.pooled_form(fixed.family)) is not None:
        return Refit(fitted_member(fixed, data, all_rows=False), pooled.prediction)
    unseen = data.whole(data.family(fixed.family))[2]
    start = time.perf_counter()
    member = fitted_member(fixed, data, all_rows=False)
    before = time.perf_counter()
    prediction = member.prediction(unseen, data.task)
    return Refit(member, prediction, before - start, time.perf_counter() - before)


def fitted_member(fixed: FixedMember, data: StudyData, *, all_rows: bool) -> Member:
    """Return the model of a configuration, fitted on the search rows or on all; the run has fitted the pool's so."""
    if (pooled := data.pooled_form(fixed.family)) is not None:
        return replace(pooled.final if all_rows else pooled.member, weight=fixed.weight)
    family = data.family(fixed.family)
    encoder, rows = data.everything(family) if all_rows else data.whole(family)[:2]
    return Member(
        family=family.name,
        columns=data.columns_of(family),
        encoder=encoder,
        fitted=_fit(fixed, family, rows, data.task),
        own=data.own.get(fixed.family),
        config=fixed.config if fixed.steps is None else family.at_step(fixed.config, fixed.steps),
        weight=fixed.weight,
        bounds=data.bounds_of(rows),
    )


def _fit(fixed: FixedMember, family: Family, rows: EncodedRows, task: Task) -> Model:
    if isinstance(family, SteppedFamily) and fixed.stages:
        stages = [Stage(parameters_of(stage.config), stage.seed, stage.steps) for stage in fixed.stages]
        return family.fit_stages(stages, rows, task)
    return family.fit(parameters_of(fixed.config), rows, task, fixed.seed, steps=fixed.steps)
