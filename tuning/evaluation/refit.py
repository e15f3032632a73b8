"""A recorded trial's model, fitted again: on the search rows for the test score, on all rows for keeping."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace

from tuning.basics.seeds import trial_seed
from tuning.evaluation.study_data import StudyData
from tuning.models.base import Matrix, Model, Stage, SteppedFamily
from tuning.models.member import Member
from tuning.models.pooled import POOL, PooledMember
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.task import Prediction
from tuning.records.schema import TrialRecord


@dataclass
class Refits:
    """The models of one study's trials, each fitted once on the search rows, and what it says about the hold-out.

    fit_seconds, predict_seconds: how long each of them took for that, by the trial's number.
    """

    data: StudyData
    fit_seconds: dict[int, float] = field(default_factory=dict)
    predict_seconds: dict[int, float] = field(default_factory=dict)
    _members: dict[int, tuple[Member, Prediction]] = field(default_factory=dict)

    def of(self, record: TrialRecord) -> tuple[Member, Prediction]:
        """A trial's model and its predictions of the hold-out rows."""
        if record.family == POOL and self.data.pooled is not None:
            self.fit_seconds[record.trial] = self.predict_seconds[record.trial] = 0.0  # paid for by the run
            return self.data.pooled.member, self.data.pooled.prediction
        if record.trial not in self._members:
            data = self.data
            family = data.family_of(record.config)
            encoder, rows, unseen = data.whole(family)
            start = time.perf_counter()
            fitted = fit(record, data, rows)
            between = time.perf_counter()
            member = Member(
                family.name,
                data.columns_of(family),
                encoder,
                fitted,
                data.own.get(record.family),
                family.at_step(record.config, record.best_step or len(record.steps)),
                target=data.target_of(record.config),
                bounds=data.bounds_of(rows),
            )
            before = time.perf_counter()
            prediction = member.prediction(unseen, data.task)
            self.predict_seconds[record.trial] = time.perf_counter() - before
            self.fit_seconds[record.trial] = between - start
            self._members[record.trial] = member, prediction
        return self._members[record.trial]


@dataclass
class AllRows:
    """The models of the same trials fitted on all rows."""

    data: StudyData
    _encoded: dict[tuple[str, bool], tuple[Encoder, Matrix]] = field(default_factory=dict)

    def of(self, member: Member, record: TrialRecord) -> Member:
        """A trial's model of the search rows, fitted on all rows; the pool is what it is."""
        if isinstance(member, PooledMember):
            return member
        family = self.data.family_of(record.config)
        if family.preprocessing not in self._encoded:
            self._encoded[family.preprocessing] = self.data.everything(family)
        encoder, rows = self._encoded[family.preprocessing]
        return replace(member, encoder=encoder, fitted=fit(record, self.data, rows), bounds=self.data.bounds_of(rows))


def fit(record: TrialRecord, data: StudyData, rows: Matrix) -> Model:
    """A trial's model of some rows, up to its best step."""
    family = data.family_of(record.config)
    if isinstance(family, SteppedFamily) and (stages := stages_of(record, data)):
        return family.fit_stages(stages, rows, data.task)
    return family.fit(data.parameters_of(record.config), rows, data.task, record.seed, steps=record.best_step)


def stages_of(record: TrialRecord, data: StudyData) -> list[Stage]:
    """The way of a population-based trial to its best step; empty when its configuration never changed.

    Up to an exploit the donor trained, with its own seed: `lineage` names it, and each entry of `schedule` but the
    last ends with one.
    """
    schedule = json.loads(record.schedule or "[]")
    donors = [exploit["donor"] for exploit in json.loads(record.lineage or "[]")]
    seeds = [*(trial_seed(record.study_seed, donor) for donor in donors), record.seed]
    last = record.best_step or len(record.steps)
    ends = [*(begin for begin, _ in schedule[1:]), last]
    stages: list[Stage] = []
    for (_, config), seed, end in zip(schedule, seeds, ends, strict=True) if schedule else ():
        steps = min(end, last)
        if steps > (stages[-1].steps if stages else 0):
            stages.append(Stage(data.parameters_of(config), seed, steps))
    return stages
