"""From a definition to its `RunSpec`: the task, the metric, the search space and the stopping rules, settled once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from schedulers import stopping
from schedulers.stopping import RuleSpec
from search_spaces import SearchSpace, SpaceError
from tuning.data.customers import Customer
from tuning.data.prepared import OwnCode
from tuning.data.sampling import sample_target
from tuning.definition.definition import Definition
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError
from tuning.evaluation.metrics import resolve_metric
from tuning.planning.model_space import check_models, space_of
from tuning.preprocessing.splitting import STRATIFIED
from tuning.preprocessing.task import REGRESSION, guess_task
from tuning.user_code import is_file


def resolve(definition: Definition, customers: Sequence[Customer], code: OwnCode) -> tuple[RunSpec, list[str]]:
    """The spec of a definition, and notes on what was chosen for the user; `PlanError` says what cannot work."""
    notes: list[str] = []
    task, metric = None, definition.metric or "objective"
    if definition.objective is None:
        task = definition.task if definition.task != "auto" else _guess(definition, customers, code, notes)
        metric = _metric(definition, task, code)
        _check_task(definition, task)
        if definition.metric is None:
            notes.append(f"metric {metric!r} is the default for {task}; set `metric` to choose.")
    space, left_out = resolve_space(definition, task, metric, code)
    spec = RunSpec(
        definition=definition,
        task=task,
        metric=metric,
        mode=definition.mode if definition.objective is not None or definition.own_metric else "max",
        space=space,
        stop=_stopping_rules(definition),
    )
    return spec, [*notes, *left_out]


def resolve_space(
    definition: Definition, task: str | None, metric: str, code: OwnCode
) -> tuple[SearchSpace, tuple[str, ...]]:
    """The search space, and notes on models that were left out of it because they cannot do what is asked."""
    if task is None:
        assert isinstance(definition.search_space, SearchSpace)  # an objective has no preset
        return definition.search_space, ()
    try:
        space = space_of(definition.search_space, definition.models, task)
    except SpaceError as error:
        raise PlanError(f"search_space: {error}") from error
    return check_models(space, code.families, task, metric, code.metric)


def _stopping_rules(definition: Definition) -> tuple[RuleSpec, ...]:
    """The definition's rules, and the seconds of a comparison in place of a `study_time`."""
    rules = () if definition.stop is None else definition.stop.rules
    if definition.compare is None or definition.compare.seconds is None:
        return rules
    (limit,) = stopping.parse({"study_time": {"seconds": definition.compare.seconds}})
    return (*(rule for rule in rules if rule.name != limit.name), limit)


def _guess(definition: Definition, customers: Sequence[Customer], code: OwnCode, notes: list[str]) -> str:
    values, where = sample_target(definition, customers, code)
    if values is None:
        raise PlanError(
            f"no usable target {definition.target!r} to look at: {where.rstrip('.')}. "
            "Correct `target` or `data`, or set `task`."
        )
    task, why = guess_task(values)
    notes.append(f"task {task!r} is guessed from the target of {where}: {why}; set `task` to choose.")
    return task


def _metric(definition: Definition, task: str, code: OwnCode) -> str:
    """The metric's name: a scorer's, or that of the user's function, which is loaded to see that it can be."""
    if code.metric is not None and definition.metric is not None:
        return os.path.basename(definition.metric) if is_file(definition.metric) else definition.metric
    if definition.mode == "min":
        raise PlanError(
            "mode: min goes with an objective or a metric function of your own; scikit-learn's scorers are always "
            "better when greater (neg_mean_absolute_error, …). Remove mode."
        )
    return resolve_metric(definition.metric, task, weighted=definition.weight is not None)


def _check_task(definition: Definition, task: str) -> None:
    if task != REGRESSION:
        return
    if definition.split.kind == STRATIFIED:
        raise PlanError("split: stratified needs classes, and the task is regression; use random, group or time.")
    if definition.class_weight is not None:
        raise PlanError("class_weight: the task is regression, there are no classes; use `weight` for rows.")
