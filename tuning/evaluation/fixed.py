"""A configuration that is not searched for, but known: what it takes to fit an earlier winner again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from pydantic import TypeAdapter

from tuning.basics.seeds import trial_seed
from tuning.models.base import Stage
from tuning.models.pooled import POOL_FORMS
from tuning.records.schema import MODEL, Config, TrialRecord


@dataclass(frozen=True)
class FixedMember:
    """One model of a fixed configuration.

    Attributes:
        config: its hyperparameters, with the name of its family as `model`.
        seed: of its fit.
        steps: how long it trains (in rounds, trees or epochs); None for a family that fits at once.
        weight: of its answers among those of all members.
        stages: how it came to `config`; empty where that never changed.
    """

    config: Config
    seed: int
    steps: int | None = None
    weight: float = 1.0
    stages: tuple[Stage, ...] = ()

    @classmethod
    def of(cls, record: TrialRecord, weight: float = 1.0) -> FixedMember:
        """Return what fits a recorded trial's model again, up to its best step."""
        return cls(record.config, record.seed, record.best_step, weight, tuple(_stages(record)))

    @property
    def family(self) -> str:
        """The name of its family."""
        return str(self.config[MODEL])


def _stages(record: TrialRecord) -> Sequence[Stage]:
    """Up to an exploit the donor trained, with its own seed: `lineage` names it, and each entry of `schedule` but the
    last ends with one."""
    schedule = record.changes
    donors = [exploit["donor"] for exploit in json.loads(record.lineage or "[]")]
    seeds = [*(trial_seed(record.study_seed, donor) for donor in donors), record.seed]
    last = record.best_step or len(record.steps)
    ends = [*(begin for begin, _ in schedule[1:]), last]
    stages: list[Stage] = []
    for (_, config), seed, end in zip(schedule, seeds, ends, strict=True) if schedule else ():
        steps = min(end, last)
        if steps > (stages[-1].steps if stages else 0):
            stages.append(Stage(config, seed, steps))
    return stages


@dataclass(frozen=True)
class FixedConfiguration:
    """What a customer's model is made of, without a search: one member, or those of an ensemble, the best one first.

    only_scored: it is fitted on the rows of a search whatever the definition says, scored on its hold-out, not saved.
    """

    members: tuple[FixedMember, ...]
    only_scored: bool = False

    @property
    def pooled(self) -> bool:
        """Whether a form of the run's pool is a member."""
        return any(member.family in POOL_FORMS for member in self.members)

    @property
    def without_seeds(self) -> FixedConfiguration:
        """The same with seed 0: two that are equal so are fitted alike but for luck, with the same weights."""
        return FixedConfiguration(tuple(replace(each, seed=0) for each in self.members))

    @property
    def ensemble(self) -> str | None:
        """Its members as a study's record holds them, of no trial; None of a single one."""
        if len(self.members) == 1:
            return None
        return json.dumps([{"trial": None, "family": each.family, "weight": each.weight} for each in self.members])

    def to_json(self) -> str:
        """Return it as JSON; the same one is always the same text."""
        whole = _adapter().dump_python(self)
        return json.dumps(whole, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> FixedConfiguration:
        """Return the opposite of `to_json`."""
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[FixedConfiguration]:
    return TypeAdapter(FixedConfiguration)
