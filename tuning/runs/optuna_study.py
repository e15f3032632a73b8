"""A study of ours as one of Optuna's, whatever algorithm searched, for its plots, importances and dashboard."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from search_spaces import Choice, Constant, Parameter, SearchSpace
from search_spaces.values import Configuration
from tuning.records.schema import FINISHED, STOPPED, Config, TrialRecord

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

T = TypeVar("T")
Storage: TypeAlias = "str | BaseStorage | None"


def optuna_study(records: Sequence[TrialRecord], space: SearchSpace, mode: str, storage: Storage = None) -> Study:
    """An Optuna study with the recorded trials: finished ones are complete, stopped ones pruned, the others failed.

    records: of one study, in order. space: of the study; parameters that it does not vary are left out. mode:
    "min" or "max". storage: as of `optuna.create_study`, such as "sqlite:///optuna.db", which optuna-dashboard shows;
    None is in memory. What the storage has of the study already is not added again.

    Source: `optuna.trial.create_trial` and `Study.add_trials`, which Optuna offers for trials of other programs.
    """
    name = f"{records[0].run}/{records[0].study}" if records else None
    study = new_study("minimize" if mode == "min" else "maximize", name, storage)
    points = [_point(space, record.config) for record in records]
    known = _distributions(space, points)
    frozen = [_frozen(record, point, known) for record, point in zip(records, points, strict=True)]
    study.add_trials(frozen[len(study.get_trials(deepcopy=False)) :])
    return study


def new_study(direction: str, name: str | None = None, storage: Storage = None) -> Study:
    """Return a study that is announced nowhere."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # Optuna announces every study on stderr
    try:
        return optuna.create_study(storage=storage, study_name=name, direction=direction, load_if_exists=True)
    finally:
        optuna.logging.set_verbosity(level)


def _point(space: SearchSpace, config: Config) -> Configuration:
    """Label → value, as Optuna takes it, of the parameters that vary."""
    there = space.existing(config)
    return {
        label: _value(parameter, config[parameter.name]) for label, parameter in there.items() if _varies(parameter)
    }


def _varies(parameter: Parameter) -> bool:
    return not isinstance(parameter, Constant) and not parameter.single


def _value(parameter: Parameter, value: T) -> T | str:
    if isinstance(parameter, Choice) and not all(isinstance(each, str) for each in parameter.values):
        return json.dumps(value)  # Optuna mixes up 1, 1.0 and true, and has no lists
    return value


def _distributions(space: SearchSpace, points: Iterable[Configuration]) -> dict[str, BaseDistribution]:
    """Label → distribution, wide enough for what was tried: a warm start or an explored value may lie outside."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    tried: dict[str, list[float]] = {}
    for point in points:
        for label, value in point.items():
            tried.setdefault(label, []).append(value)
    found: dict[str, BaseDistribution] = {}
    for label, values in tried.items():
        parameter = space.labelled[label]
        if isinstance(parameter, Choice):
            choices = [_value(parameter, value) for value in parameter.values]
            found[label] = CategoricalDistribution(list(dict.fromkeys([*choices, *values])))
            continue
        assert not isinstance(parameter, Constant)
        low, high = min(parameter.low, *values), max(parameter.high, *values)
        kind = IntDistribution if all(isinstance(value, int) for value in [low, high, *values]) else FloatDistribution
        found[label] = kind(low, high, log=parameter.log and low > 0)
    return found


def _frozen(record: TrialRecord, point: Configuration, known: Mapping[str, BaseDistribution]) -> FrozenTrial:
    from optuna.trial import FrozenTrial, TrialState

    score = record.score if record.score is not None and math.isfinite(record.score) else None
    complete = record.state == FINISHED and score is not None
    state = TrialState.COMPLETE if complete else TrialState.PRUNED if record.state == STOPPED else TrialState.FAIL
    begun = datetime.fromtimestamp(record.started, UTC).astimezone().replace(tzinfo=None)
    return FrozenTrial(
        number=record.trial,
        trial_id=record.trial,
        state=state,
        value=score if state != TrialState.FAIL else None,
        datetime_start=begun,
        datetime_complete=begun + timedelta(seconds=record.seconds),
        params=point,
        distributions={label: known[label] for label in point},
        intermediate_values={step.step: step.score for step in record.steps},
        user_attrs={
            "customer": record.customer,
            "family": record.family,
            "state": record.state,
            "reason": str(record.reason or ""),
            "config": dict(record.config),
        },
        system_attrs={},
    )
