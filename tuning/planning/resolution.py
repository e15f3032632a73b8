"""From a definition to its `RunSpec`: the task, the metric, the search space and the stopping rules, settled once."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from schedulers import stopping
from schedulers.stopping import RuleSpec
from search_spaces import SearchSpace, SpaceError
from tuning.basics.wording import did_you_mean, name_list, raised
from tuning.data.customers import Customers
from tuning.data.sampling import SampledFrames, TargetSample, sample_target
from tuning.definition.definition import Definition
from tuning.definition.run_spec import RunSpec
from tuning.errors import CustomerError, DefinitionError, PlanError
from tuning.evaluation.metrics import Metric, is_of_classes, mode_of, needs_scores, resolve_metric, sure_of
from tuning.evaluation.target_demands import demand_of, objection
from tuning.models import bounds
from tuning.notes import Note, PlanCode
from tuning.planning.columns import odd_text_notes
from tuning.planning.model_space import check_models, common_tasks, space_of
from tuning.planning.portfolios.sources import check_portfolio, find_portfolio
from tuning.preprocessing.classes import Label, find_label, guess_positive, read_classes
from tuning.preprocessing.roles import encode_target, read_target
from tuning.preprocessing.row_order import date_of, order_note, row_orders
from tuning.preprocessing.splitting import AUTO, RANDOM, STRATIFIED
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, TASKS, Prediction, agreed_task
from tuning.study.customer_data import OwnCode
from tuning.user_code import exits_raised

if TYPE_CHECKING:
    import pandas as pd

SMALLER_IS_BETTER = {
    "loss", "logloss", "error", "errors", "err", "rmse", "rmsle", "rmspe", "mse", "mae", "mape", "smape", "wape", "nll",
    "cost", "costs", "regret", "deviance", "perplexity", "brier", "wer", "cer", "pinball", "crps",
}  # fmt: skip


@dataclass(frozen=True)
class _Prediction:
    """What models are to predict.

    Attributes:
        task: its name; None where an objective is tuned.
        positive: the positive class of a binary task.
        time_column: the date to split by.
        guesses: notes on what was guessed of the task and the positive class, for the user to correct.
        notes: on the targets that were looked at.
    """

    task: str | None = None
    positive: Label | None = None
    time_column: str | None = None
    guesses: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()


def resolve(
    definition: Definition, customers: Customers, code: OwnCode, frames: SampledFrames
) -> tuple[RunSpec, list[Note]]:
    """Return the spec of a definition, and notes on what was chosen for the user; `PlanError` says what cannot work.

    frames: those of `sample_frames`.
    """
    _check_mode(definition)
    found, metric = _Prediction(), definition.metric or "objective"
    if definition.objective is None:
        found = _predicted(definition, customers, code, frames)
    task = found.task
    try:
        if task is not None:
            metric = _metric(definition, task, code)
        _check_baseline(definition, task, metric, code)
        space, left_out = resolve_space(definition, task, metric, code)
    except (DefinitionError, PlanError) as error:
        if definition.task != "auto" or task is None:
            raise
        guess = str(found.guesses[0])  # which names the customers
        raise type(error)(f"{str(error).rstrip('.')}; {guess}") from error
    spec = RunSpec(
        definition=definition,
        task=task,
        metric=metric,
        mode=definition.mode if definition.objective is not None or definition.own_metric else mode_of(metric),
        space=space,
        stop=_stopping_rules(definition),
        positive=found.positive,
        time_column=found.time_column,
        portfolio=find_portfolio(definition, task),
    )
    return spec, [*found.guesses, *found.notes, *left_out, *check_portfolio(definition, spec.portfolio, space)]


def _check_mode(definition: Definition) -> None:
    """Raise `PlanError` for a metric of the user's own that sounds like a loss and has no `mode`."""
    if "mode" in definition.model_fields_set or not (definition.objective is not None or definition.own_metric):
        return
    name = (definition.metric or "").rpartition(":")[2]
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
    if words & SMALLER_IS_BETTER and "neg" not in words:
        raise PlanError(
            f"mode: {name!r} sounds like a figure that is better when smaller, and by default a larger one is. "
            "Set mode: min, or mode: max."
        )


def resolve_space(
    definition: Definition, task: str | None, metric: str, code: OwnCode
) -> tuple[SearchSpace, tuple[Note, ...]]:
    """Return the search space, and notes on models that were left out of it because they cannot do what is asked."""
    if task is None:
        assert isinstance(definition.search_space, SearchSpace)  # an objective has no preset
        return definition.search_space, ()
    try:
        space = space_of(definition.search_space, definition.models, task)
    except SpaceError as error:
        raise PlanError(f"search_space: {error}") from error
    return check_models(space, code.families, task, metric, code.metric)


def _stopping_rules(definition: Definition) -> tuple[RuleSpec, ...]:
    """Return the definition's rules, and the seconds of a comparison in place of a `study_time`."""
    rules = definition.stop or ()
    if definition.compare is None or definition.compare.seconds is None:
        return rules
    (limit,) = stopping.parse({"study_time": {"seconds": definition.compare.seconds}})
    return (*(rule for rule in rules if rule.name != limit.name), limit)


def _predicted(definition: Definition, customers: Customers, code: OwnCode, frames: SampledFrames) -> _Prediction:
    """Return what is to be predicted, as the definition says it or guessed from the largest customers."""
    task: str = definition.task
    sample = sample_target(definition, customers, frames)
    why: Note | None = None
    if task == "auto":
        if not sample.targets:
            raise PlanError(
                f"no usable target {definition.target!r} to look at: {sample.reason or 'there is no customer.'} "
                "Correct `target` or `data`, or set `task`."
            )
        task, why = agreed_task(sample.targets, of_classes=_of_classes(definition, code))
    _check_task(definition, task)
    if code.metric is not None:
        _try_metric(definition, task, code.metric, sample)
    undefined = _beyond_metric(definition, sample) if task == REGRESSION else []
    time_column, order = _time_split(definition, task, sample.frames)
    positive, guess, missing = _positive(definition, task, sample)
    return _Prediction(
        task,
        positive,
        time_column,
        tuple(_guesses(sample, task, why, positive, guess)),
        (*undefined, *order, *odd_text_notes(definition, sample.frames), *missing),
    )


def _time_split(definition: Definition, task: str, frames: Mapping[str, pd.DataFrame]) -> tuple[str | None, list[Note]]:
    """Return the column of a time split that the first rows of some customers call for, and a note on their order.

    Split at random, the scores of such rows would say little of rows to come. None where they have no order by a date,
    or the definition says how rows are split.
    """
    if definition.split.kind != AUTO or definition.target is None:
        return None, []
    found, looked_at = row_orders(frames.values(), definition.target, task, definition.dates)
    if not found:
        return None, []
    shuffled, column = RANDOM if task == REGRESSION else STRATIFIED, date_of(found)
    why = order_note(found, looked_at)
    if column is not None:
        return column, [PlanCode.SPLIT_BY_TIME(column, why=why, shuffled=shuffled)]
    return None, [PlanCode.ROWS_IN_ORDER(found[0].column or "COLUMN", why=why, shuffled=shuffled)]


def _guesses(
    sample: TargetSample, task: str, why: Note | None, positive: Label | None, guess: Note | None
) -> Iterator[Note]:
    """Return one note on what was guessed. why, guess: of the task, of the positive class; None where it is known."""
    customers = list(sample.targets)
    if why and guess:
        yield PlanCode.BINARY_GUESSED(task, positive=positive, customers=customers, why=why, positive_why=guess)
    elif why:
        yield PlanCode.TASK_GUESSED(task, customers=customers, why=why)
    elif guess:
        yield PlanCode.POSITIVE_GUESSED(task, positive=positive, why=guess)


def _beyond_metric(definition: Definition, sample: TargetSample) -> list[Note]:
    """Return a note on customers' targets that the metric cannot score; `PlanError` where it can score nobody's."""
    metric, found = definition.metric or "", dict[str, Note]()
    for name, values in sample.targets.items() if demand_of(metric) and definition.weight is None else ():
        with contextlib.suppress(CustomerError):
            if why := objection(metric, read_target(values, REGRESSION)[0].dropna().to_numpy(dtype=float)):
                found[name] = why
    if not found:
        return []
    name, why = next(iter(found.items()))
    if sample.whole and len(found) == len(sample.targets):
        raise PlanError(f"metric: {why}" if len(found) == 1 else f"metric, of customer {name!r} and all others: {why}")
    return [PlanCode.METRIC_UNDEFINED(name, lacking=len(found), customers=len(sample.targets), why=why)]


def _of_classes(definition: Definition, code: OwnCode) -> bool | None:
    """Return whether the definition says that whole numbers are classes (True) or numbers (False)."""
    if definition.positive is not None or definition.class_weight is not None or definition.split.kind == STRATIFIED:
        return True
    if definition.bounds != bounds.AUTO:
        return False
    if definition.own_metric:
        return getattr(code.metric, "needs_proba", None)
    if definition.metric is not None:
        return is_of_classes(definition.metric)
    tasks = common_tasks(definition.search_space, definition.models, code.families)
    return REGRESSION not in tasks if len(tasks) < len(TASKS) else None


def _positive(definition: Definition, task: str, sample: TargetSample) -> tuple[Label | None, Note | None, list[Note]]:
    """Return the positive class as the data has it, why where it is guessed, and notes on classes that nobody has.

    `PlanError` for a class that no customer has.
    """
    if task == REGRESSION:
        return None, None, []
    targets = [read_target(values, task)[0] for values in sample.targets.values()]
    labels = dict.fromkeys(label for values in targets for label in read_classes(values.dropna())[1])
    weights = definition.class_weight if isinstance(definition.class_weight, Mapping) else {}
    missing: list[Note] = []
    for key, wanted in [("positive", definition.positive), *(("class_weight", label) for label in weights)]:
        if wanted is None or not labels or find_label(wanted, labels) is not None:
            continue
        if sample.whole:
            raise PlanError(
                f"{key}: no class {wanted!r} in the target of {sample.names}.{did_you_mean(wanted, labels)} There are "
                f"{name_list(labels)}."
            )
        note = PlanCode.CLASS_MISSING(key, label=wanted, customers=len(targets), classes=list(map(str, labels)))
        missing.append(note)
    if task != BINARY:
        return None, None, missing
    if definition.positive is not None:
        found = find_label(definition.positive, labels)
        return definition.positive if found is None else found, None, missing
    guess = guess_positive(targets)
    return (None, None, missing) if guess is None else (*guess, missing)


def _metric(definition: Definition, task: str, code: OwnCode) -> str:
    """The metric's name: scikit-learn's, or that of the user's function, which is loaded to see that it can be."""
    if code.metric is not None and definition.metric is not None:
        return os.path.basename(definition.metric)  # a file's folder is no part of it
    if definition.mode == "min":
        raise PlanError(
            "mode: min goes with an objective or a metric function of your own. Of a scikit-learn scorer it is known "
            "which scores are better: of errors such as mae and rmse smaller ones, of others larger ones. Remove mode."
        )
    return resolve_metric(definition.metric, task, weighted=definition.weight is not None)


def _try_metric(definition: Definition, task: str, function: Callable[..., float], sample: TargetSample) -> None:
    """Raise `PlanError` for a metric of the user's own that raises or returns no number, whosever targets it gets.

    It gets usual targets alone, three of four predicted rightly: what is odd in a customer's is that customer's matter.
    """
    failed: tuple[str, BaseException] | None = None
    for name, values in sample.targets.items():
        try:
            y, kind = encode_target(read_target(values, task)[0].dropna(), task)
        except CustomerError:
            continue
        y = np.unique(y)
        if not kind.classification:
            y = y[len(y) // 4 : len(y) - len(y) // 4]
        y = np.repeat(y, 4)
        said = np.roll(y, 1)
        answer = sure_of(said, kind) if kind.classification else Prediction(said)
        metric = Metric(os.path.basename(definition.metric or ""), kind, function)
        try:
            with exits_raised():
                metric.score(y, answer, None if definition.weight is None else np.ones(len(y)))
            return
        except (Exception, SystemExit) as error:
            failed = failed or (name, error)
    if failed:
        raise PlanError(
            f"metric: {definition.metric} cannot score the targets of customer {failed[0]!r}: {raised(failed[1])}. It "
            "was called with some of these as true and predicted values, and has to return a number."
        ) from failed[1]


def _check_baseline(definition: Definition, task: str | None, metric: str, code: OwnCode) -> None:
    """Raise `PlanError` for predictions in a column that the metric cannot score."""
    if definition.baseline_column is None or task != MULTICLASS or not needs_scores(metric, task, code.metric):
        return
    raise PlanError(
        f"baseline.column: {metric} needs a probability of each of several classes, and a column holds "
        "one class per row. Set a metric of predicted classes, such as accuracy or f1_macro, or another baseline."
    )


def _check_task(definition: Definition, task: str) -> None:
    if definition.positive is not None and task != BINARY:
        raise PlanError(f"positive: the task is {task}, only a binary one has a positive class; remove it.")
    if task != REGRESSION:
        if definition.bounds != bounds.AUTO:
            raise PlanError(f"bounds: the task is {task}, and only numbers have bounds; remove it.")
        return
    if definition.split.kind == STRATIFIED:
        raise PlanError("split: stratified needs classes, and the task is regression; use random, group or time.")
    if definition.class_weight is not None:
        raise PlanError("class_weight: the task is regression, there are no classes; use `weight` for rows.")
