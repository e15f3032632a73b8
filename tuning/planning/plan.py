"""What would run, where, and at what cost: made before anything is paid for, without Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tuning.data.balancing import divide, shard_count
from tuning.data.customers import UNORDERED, Customer, find_customers
from tuning.definition.definition import Definition
from tuning.definition.methods import Method
from tuning.definition.options import Resources
from tuning.errors import PlanError
from tuning.models.base import Family
from tuning.models.entries import own_families
from tuning.planning.model_space import (
    check_configurations,
    check_installed,
    check_models,
    check_savable,
    space_of,
)
from tuning.planning.pbt_checks import check_population
from tuning.preprocessing.splitting import STRATIFIED
from tuning.preprocessing.task import REGRESSION
from tuning.seeds import derive
from tuning.storage.run_directory import RunDirectory
from tuning.study import warm_start
from tuning.study.study import Study

PACKED, SPREAD = "packed", "spread"
LONG_TRIAL_S = 0.5
SHOWN_LABELS = 4  # parameters in a note


@dataclass(frozen=True)
class Plan:
    """studies: all of them. shards: positions of studies, one list per Tune trial, balanced by size.

    placement: "packed", a Tune trial works through a shard of studies in process; "spread", it is a trial.
    """

    definition: Definition
    task: str | None
    metric: str
    mode: str
    space: Any
    studies: tuple[Study, ...]
    shards: tuple[tuple[int, ...], ...]
    slots: int
    placement: str = PACKED
    notes: tuple[str, ...] = field(default=())

    @property
    def trials(self) -> int:
        return sum(study.trials or self.definition.trials for study in self.studies)

    @property
    def resources(self) -> list[Resources]:
        """What each shard's worker takes of the cluster."""
        return [self.studies[shard[0]].resources or self.definition.resources for shard in self.shards]

    @property
    def core_seconds(self) -> float:
        """A rough estimate: 5 ms per trial and fold set plus 20 µs per row, as measured with the linear preset."""
        total = 0.0
        for study in self.studies:
            rows = study.customer.rows if study.customer.rows is not None else study.customer.size / 80
            total += (study.trials or self.definition.trials) * (0.01 + 20e-6 * rows)
        return total

    def to_dict(self) -> dict[str, Any]:
        """The plan's figures as plain values."""
        return {
            "name": self.definition.name,
            "customers": len({study.customer.id for study in self.studies}),
            "studies": len(self.studies),
            "trials": self.trials,
            "task": self.task,
            "metric": self.metric,
            "mode": self.mode,
            "algorithm": self._names("algorithm"),
            "scheduler": self._names("scheduler"),
            "placement": self.placement,
            "slots": self.slots,
            "shards": len(self.shards),
            "core_seconds": round(self.core_seconds, 1),
            "notes": list(self.notes),
        }

    def _placed(self) -> str:
        if self.placement == SPREAD:
            return f"spread: each trial a Tune trial, {self.slots} at once in one tune.Tuner"
        return f"packed: {len(self.shards)} shards on {self.slots} slots in one tune.Tuner"

    def _names(self, part: str) -> str:
        if self.definition.compare is None:
            return str(getattr(self.definition, part).name)
        return ", ".join(dict.fromkeys(getattr(each, part).name for each in self.definition.compare.algorithms))

    @property
    def _each(self) -> str:
        compared = self.definition.compare
        if compared is None:
            names = f"{self.definition.algorithm.name} searcher and {self.definition.scheduler.name} scheduler"
            return f"one per customer, each with its own {names}"
        labels = ", ".join(method.label for method in compared.algorithms)
        return f"{compared.seeds} seeds of each of {labels} per customer"

    def describe(self) -> str:
        """The plan as text."""
        facts = self.to_dict()
        wall = self.core_seconds / max(1, self.slots)
        lines = [
            f"plan        {facts['name']}",
            f"customers   {facts['customers']}",
            f"studies     {facts['studies']} ({self._each})",
            f"trials      {facts['trials']} ({self.definition.trials} per study)",
            f"task        {facts['task'] or 'objective'}",
            f"metric      {facts['metric']} ({facts['mode']})",
            f"placement   {self._placed()}",
            f"cost        about {_duration(self.core_seconds)} of one core, {_duration(wall)} here (a rough guess)",
        ]
        lines += [f"note        {note}" for note in self.notes]
        return "\n".join(lines)


def make_plan(
    definition: Definition, customers: Sequence[Customer] | None = None, directory: RunDirectory | None = None
) -> Plan:
    """The plan of a definition for this machine; `PlanError` says what cannot work.

    customers: known already (a resumed run), else they are looked for. directory: of that run.
    """
    if definition.compare is None:
        import schedulers

        refusal = schedulers.check(definition.scheduler, definition.algorithm.name)
        if refusal:
            raise PlanError(refusal)
    # A run that has begun is not held up by its copy.
    if directory is None and (refusal := definition.mlflow.refusal()):
        raise PlanError(refusal)
    found = list(customers) if customers is not None else find_customers(definition)
    slots = definition.slots or len(os.sched_getaffinity(0))
    notes: list[str] = list(_reading(definition, found))
    task, metric = None, definition.metric or "objective"
    if definition.objective is None:
        task = definition.task if definition.task != "auto" else _guess(definition, found, notes)
        metric = _metric(definition, task, directory)
        _check_task(definition, task)
        if definition.metric is None:
            notes.append(f"metric {metric!r} is the default for {task}; set `metric` to choose.")
    own = own_families(definition.models, directory, definition.allow_pickle)
    space, left_out = resolve_space(definition, task, metric, own)
    notes += left_out
    spaces = {
        _space_key(given): resolve_space(definition.model_copy(update={"search_space": given}), task, metric, own)[0]
        for given in (customer.options.search_space for customer in found if customer.options is not None)
        if given is not None
    }
    if task is not None:
        check_installed(space)
        written = (definition.search_space, *(entry.search_space for entry in definition.models))
        if any(each is not None and not isinstance(each, str) for each in written):
            check_configurations(space, own, task)
        if definition.save_models:
            check_savable(own)
    studies = tuple(study for customer in found for study in studies_of(definition, customer, spaces))
    check_population(definition, [study.scheduler for study in studies], space, own)
    _check_algorithms(studies, space, definition.trials)
    notes += [*_losses(studies, space), *_ends(studies, space, definition.trials)]
    own_spaces = {study.customer.id: study.space for study in studies if study.space is not None}
    notes += warm_start.check(definition.warm_start, space, own_spaces, definition.trials)
    plan = Plan(
        definition=definition,
        task=task,
        metric=metric,
        mode=definition.mode if definition.objective is not None or definition.own_metric else "max",
        space=space,
        studies=studies,
        shards=make_shards(studies, slots),
        slots=slots,
        notes=tuple(notes),
    )
    return first_block(plan)


def first_block(plan: Plan) -> Plan:
    """The plan with its placement chosen, or as the definition says; `PlanError` for a scheduler it does not allow."""
    import schedulers

    wanted = plan.definition.placement
    few = 0 < len({study.id for study in plan.studies}) < plan.slots
    per_trial = plan.core_seconds / max(1, plan.trials)
    long = plan.definition.objective is not None or per_trial > LONG_TRIAL_S
    refusals = filter(None, (schedulers.check_spread(study.scheduler) for study in plan.studies))
    refusal = next(refusals, None)
    if wanted == SPREAD and refusal:
        raise PlanError(f"{refusal}.")
    if wanted == SPREAD:
        return replace(plan, placement=SPREAD)
    plain = refusal is None and plan.definition.compare is None
    if wanted == "auto" and few and long and plain:
        note = "spread, because there are fewer studies than slots and trials are long or of unknown length."
        return replace(plan, placement=SPREAD, notes=(*plan.notes, note))
    return plan


def resolve_space(
    definition: Definition, task: str | None, metric: str, own: Mapping[str, Family]
) -> tuple[Any, tuple[str, ...]]:
    """The search space, and notes on models that were left out of it because they cannot do what is asked."""
    if task is None:
        return definition.search_space, ()
    return check_models(space_of(definition.search_space, definition.models, task), own, task, metric)


def studies_of(definition: Definition, customer: Customer, spaces: Mapping[str | None, Any]) -> list[Study]:
    """A customer's studies: one, or one per algorithm and seed of a comparison.

    Those of a comparison are paired: they share the customer's folds, its start point and, per repetition, their
    seed; only an algorithm that is given twice gets another one, to show what luck does. spaces: by `_space_key`, of
    customers with one of their own.
    """
    options = customer.options
    own: dict[str, Any] = {}
    if options is not None:
        own = {
            "space": spaces.get(_space_key(options.search_space)),
            "trials": options.trials,
            "resources": options.resources,
        }
    if definition.compare is None:
        seed = derive(definition.seed, "study", customer.id)
        return [Study(customer.id, customer, definition.algorithm, definition.scheduler, seed, **own)]
    return [
        Study(
            id=compared_id(customer.id, method, number),
            customer=customer,
            algorithm=method.algorithm,
            scheduler=method.scheduler,
            seed=derive(definition.seed, "study", customer.id, number, *([method.repeat] if method.repeat else [])),
            **own,
        )
        for number in range(definition.compare.seeds)
        for method in definition.compare.algorithms
    ]


def compared_id(customer: str, method: Method, number: int) -> str:
    """The id of one study of a comparison."""
    return f"{customer}/{method.label}/{number}"


def _check_algorithms(studies: Sequence[Study], space: Any, trials: int) -> None:
    from search_spaces import SpaceError

    for algorithm in {repr(study.algorithm): study.algorithm for study in studies}.values():
        try:
            algorithm.check(space, trials)
        except SpaceError as error:
            raise PlanError(f"algorithm {algorithm.name!r}: {error}") from error


def _losses(studies: Sequence[Study], space: Any) -> Iterator[str]:
    """What the algorithms cannot be told of the run's space, each sentence once."""
    by_sentence: dict[str, dict[str, None]] = {}
    for algorithm in {repr(study.algorithm): study.algorithm for study in studies}.values():
        for sentence in algorithm.losses(space):
            label, _, what = sentence.partition(": ")
            by_sentence.setdefault(f"{algorithm.name}: {what or label}", {})[label if what else ""] = None
    for sentence, labels in by_sentence.items():
        names = [label for label in labels if label]
        shown = ", ".join(names[:SHOWN_LABELS])
        more = f" and {len(names) - SHOWN_LABELS} more" if len(names) > SHOWN_LABELS else ""
        yield f"{sentence}{f' ({shown}{more})' if names else ''}."


def _ends(studies: Sequence[Study], space: Any, trials: int) -> Iterator[str]:
    """How many configurations there are where an algorithm has an end."""
    for algorithm in {repr(study.algorithm): study.algorithm for study in studies}.values():
        size = algorithm.count(space)
        if size is None:
            continue
        left = (
            f"{trials} trials leave {size - trials:,} untried"
            if size > trials
            else "a study ends with the last of them"
        )
        yield f"{algorithm.name}: {size:,} configurations, the default one included; {left}."


def _space_key(space: Any) -> str | None:
    return space if space is None or isinstance(space, str) else str(space.fingerprint())


def _metric(definition: Definition, task: str, directory: RunDirectory | None) -> str:
    """The metric's name: a scorer's, or that of the user's function, which is loaded to see that it can be."""
    from tuning.evaluation.metrics import resolve_metric
    from tuning.user_code import is_file, load_function

    if definition.own_metric:
        assert definition.metric is not None
        inside = directory if directory is not None and not os.path.isabs(definition.metric) else None
        load_function(definition.metric, inside)
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


def _reading(definition: Definition, customers: Sequence[Customer]) -> Iterator[str]:
    keyed = [customer for customer in customers if customer.key is not None]
    tables = len({customer.table for customer in keyed})
    if definition.by and tables > 1:
        yield (
            f"each of the {tables} files is a table of its own, so a customer is a file and a value of "
            f"{', '.join(definition.by)}; give the folder instead of a pattern to take them as one table."
        )
    if any(customer.unpartitioned for customer in keyed):
        size = sum(customer.size for customer in keyed if customer.unpartitioned)
        yield f"the data ({size / 1e6:,.1f} MB) is written once into the run directory, divided by customer."
    elif keyed:
        yield "the Parquet data is read where it is, each worker its own customers' rows."


def with_places(plan: Plan, customers: Sequence[Customer]) -> Plan:
    """The plan after its customers' rows have been given a place."""
    placed = {customer.id: customer for customer in customers}
    studies = tuple(replace(study, customer=placed[study.customer.id]) for study in plan.studies)
    return replace(plan, studies=studies, shards=make_shards(studies, plan.slots))


def make_shards(studies: Sequence[Study], slots: int) -> tuple[tuple[int, ...], ...]:
    """Positions of studies, one group per Tune trial; studies of other resources are in other groups."""
    groups: dict[Any, list[int]] = {}
    for position, study in enumerate(studies):
        groups.setdefault(study.resources, []).append(position)
    shards: list[tuple[int, ...]] = []
    for positions in groups.values():
        ordered = sorted(positions, key=lambda position: _place(studies[position].customer))
        customers = [studies[position].customer for position in ordered]
        keyed = sum(customer.size for customer in customers if customer.key is not None)
        count = max(1, shard_count(len(customers), slots, keyed) * len(positions) // len(studies))
        sizes = [customer.size for customer in customers]
        shards += [tuple(ordered[item] for item in group) for group in divide(sizes, _together(customers), count)]
    return tuple(shards)


def _place(customer: Customer) -> tuple[int, int, str]:
    return (customer.table, customer.first_block, customer.id)


def _together(customers: Sequence[Customer]) -> list[Any]:
    """Studies whose data a worker should read in one go have the same entry: of one customer, or of one file."""
    return [customer.id if customer.first_block == UNORDERED else customer.files for customer in customers]


def _guess(definition: Definition, customers: Sequence[Customer], notes: list[str]) -> str:
    from tuning.data.sampling import sample_target
    from tuning.preprocessing.task import guess_task

    values, where = sample_target(definition, customers)
    if values is None:
        raise PlanError(
            f"no usable target {definition.target!r} to look at: {where.rstrip('.')}. "
            "Correct `target` or `data`, or set `task`."
        )
    task, why = guess_task(values)
    notes.append(f"task {task!r} is guessed from the target of {where}: {why}; set `task` to choose.")
    return task


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
