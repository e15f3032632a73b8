"""What would run, and where: made before anything is paid for, without Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

import schedulers
from tuning.columnar import Columnar
from tuning.data.customers import Customer, Customers, about_rows, find_customers, places_of, unpartitioned
from tuning.data.prepare_process import PrepareProcess
from tuning.data.prepared import OwnCode
from tuning.definition.definition import Definition
from tuning.definition.options import MANY_STUDIES, Resources, trials_recorded
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError, StorageError
from tuning.models.gang import Gang
from tuning.planning.algorithm_notes import idle_slots, order_matters
from tuning.planning.column_names import check_columns
from tuning.planning.gangs import check_gangs, fitting, gang_notes, largest_gang
from tuning.planning.no_effect import idle_settings
from tuning.planning.resolution import resolve
from tuning.planning.room import too_large
from tuning.planning.shards import make_shards
from tuning.planning.studies import check_studies, distinct, make_studies
from tuning.planning.transfer import learning, with_transfer
from tuning.storage.backend import check_scheme
from tuning.storage.run_directory import RunDirectory
from tuning.study import warm_start
from tuning.study.interfaces import Configuration
from tuning.study.study import Studies, Study, customers_of, family_of
from tuning.timing import HANG_TIMES, USUAL, Timing, hang_seconds
from tuning.wording import duration

PACKED, SPREAD = "packed", "spread"
MANY_ROWS = 25_000  # from here on even a linear model takes about half a second per trial
PACKAGES = ("tuning", "search_spaces", "schedulers", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "optuna", "ray")


@dataclass(frozen=True, repr=False)
class Plan:
    """What would run.

    Attributes:
        spec: what every study has in common.
        studies: all of them.
        slots: how many trials run at once.
        placement: "packed", a Tune trial works through a shard of studies in process; "spread", it is a trial.
        notes: what was chosen or found out meanwhile, a sentence each.
    """

    spec: RunSpec
    studies: Studies
    slots: int
    placement: str = PACKED
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.describe()

    @cached_property
    def shards(self) -> tuple[np.ndarray, ...]:
        """Positions of studies, one group per Tune trial, balanced by size."""
        return make_shards(self.studies, self.slots)

    def shards_of(self, group: str) -> list[int]:
        """The shards whose studies are of this group; no shard has studies of pilots or followers and of others."""
        return [number for number, study in enumerate(self._first_of_shards) if study.group == group]

    @cached_property
    def gang(self) -> Gang | None:
        """The largest gang of a trial; None where each trial is trained by one process."""
        if self.spec.definition.objective is not None:
            return None  # its parameters mean what it takes them for
        return largest_gang(study.space for study in self.studies.first_of_each("space"))

    @property
    def at_once(self) -> int:
        """How many workers have room on the slots; of trials with a gang fewer than there are slots."""
        return self.slots if self.gang is None else fitting(self.gang, self.spec.definition.resources, self.slots)

    @property
    def n_trials(self) -> int:
        """Of all studies together."""
        return int(self.studies.numbers("n_trials").sum())

    @property
    def resources(self) -> list[Resources]:
        """What each shard's worker takes of the cluster."""
        return [study.resources for study in self._first_of_shards]

    @property
    def _first_of_shards(self) -> list[Study]:
        return [self.studies[shard[0]] for shard in self.shards]

    @property
    def rows_per_trial(self) -> float:
        """Of the customers on average, by the number of their trials."""
        rows = about_rows(customers_of(self.studies))
        return float((self.studies.numbers("n_trials") * rows).sum()) / max(1, self.n_trials)

    @property
    def time_limit(self) -> str:
        """What a trial may take, as a sentence."""
        if (limit := self.spec.definition.limits.trial_seconds) is not None:
            return f"{duration(limit)} per trial (limits.trial_seconds)"
        of_objective = self.spec.definition.objective is not None
        rows = float(about_rows(customers_of(self.studies)).max(initial=0.0))
        least, most = (duration(hang_seconds(each, of_objective=of_objective)) for each in (0.0, rows))
        allowed = least if least == most else f"{least} to {most}, by its rows"
        return (
            f"a trial may make no step for {allowed}, or for {HANG_TIMES} times the longest trial before it; "
            "limits.trial_seconds sets another"
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan's figures as plain values."""
        return {
            "name": self.spec.definition.name,
            "customers": pc.count_distinct(customers_of(self.studies).texts("id")).as_py(),
            "studies": len(self.studies),
            "trials": self.n_trials,
            "task": self.spec.task,
            "positive": self.spec.positive,
            "metric": self.spec.metric,
            "mode": self.spec.mode,
            "algorithm": self._names("algorithm"),
            "scheduler": self._names("scheduler"),
            "portfolio": len(self.portfolio),
            "placement": self.placement,
            "slots": self.slots,
            "shards": len(self.shards),
            "notes": list(self.notes),
        }

    @cached_property
    def portfolio(self) -> list[Configuration]:
        """The configurations that studies of the run's search space try first; the first is the baseline."""
        return warm_start.fitting(self.spec.portfolio, self.spec.space)

    @property
    def _begin(self) -> str:
        if not self.portfolio:
            return "none; the baseline is the default configuration"
        given = self.spec.definition.portfolio
        source = f" ({given})" if isinstance(given, str) else ""
        number = "1 configuration" if len(self.portfolio) == 1 else f"{len(self.portfolio)} configurations"
        return f"{number}{source}; the baseline is {family_of(self.portfolio[0])}"

    @property
    def _positive(self) -> str:
        return "" if self.spec.positive is None else f" (positive class {self.spec.positive!r})"

    def _placed(self) -> str:
        if self.placement == SPREAD:
            return f"spread: each trial a Tune trial, {self.at_once} at once in one tune.Tuner"
        return f"packed: {len(self.shards)} shards on {self.slots} slots in one tune.Tuner"

    def _names(self, part: str) -> str:
        if self.spec.definition.compare is None:
            return str(getattr(self.spec.definition, part).name)
        return ", ".join(dict.fromkeys(getattr(each, part).name for each in self.spec.definition.compare.algorithms))

    @property
    def _each(self) -> str:
        compared = self.spec.definition.compare
        if compared is None:
            names = (
                f"{self.spec.definition.algorithm.name} searcher and {self.spec.definition.scheduler.name} scheduler"
            )
            return f"one per customer, each with its own {names}"
        labels = ", ".join(method.label for method in compared.algorithms)
        return f"{compared.seeds} seeds of each of {labels} per customer"

    def describe(self) -> str:
        """The plan as text."""
        facts = self.to_dict()
        lines = [
            f"plan        {facts['name']}",
            f"customers   {facts['customers']}",
            f"studies     {facts['studies']} ({self._each})",
            f"trials      {facts['trials']} ({self.spec.definition.trials} per study)",
            f"task        {facts['task'] or 'objective'}{self._positive}",
            f"metric      {facts['metric']} ({facts['mode']})",
            f"portfolio   {self._begin}",
            f"placement   {self._placed()}",
        ]
        lines.append(f"time limit  {self.time_limit}")
        lines += [f"note        {note}" for note in self.notes]
        return "\n".join(lines)


def make_plan(
    definition: Definition,
    customers: Sequence[Customer] | None = None,
    timing: Timing = USUAL,
    *,
    in_process: bool = False,
) -> Plan:
    """The plan of a definition for this machine; `PlanError` says what cannot work.

    customers: known already, else they are looked for. timing: of the look at one customer. in_process: one trial after
    another, whatever the definition says of `placement`.
    """
    if definition.compare is None and (refusal := schedulers.check(definition.scheduler, definition.algorithm.name)):
        raise PlanError(refusal)
    if refusal := definition.mlflow.refusal():
        raise PlanError(refusal)
    try:
        check_scheme(definition.storage)
    except StorageError as error:
        raise PlanError(str(error)) from error
    found = Columnar.of(Customer, customers) if customers is not None else find_customers(definition)
    with PrepareProcess(definition.prepare, timing.prepare_s) as process:
        code = OwnCode(definition, process=process).loaded()
        columns = check_columns(definition, found, code)
        spec, chosen = resolve(definition, found, code)
    lost = [f"customer {name!r} has no say in what is guessed: {why}." for name, why in process.lost.items()]
    studies = make_studies(spec, found, code)
    spec, studies, taught = with_transfer(spec, studies)
    if definition.warm_start and not definition.customers:
        warm_start.check_customers(definition.warm_start, set(found.texts("id").to_pylist()))
    slots = _slots(definition)
    idle = idle_settings(spec, distinct(study.scheduler for study in studies.first_of_each("scheduler")), code)
    notes = (
        *_reading(definition, found),
        *columns,
        *lost,
        *chosen,
        *check_studies(spec, studies, code),
        *idle,
        *([] if in_process else too_large(definition, studies, slots)),
        *taught,
        *_copied(definition, len(studies)),
        *_shadows(),
    )
    return _with_placement(Plan(spec=spec, studies=studies, slots=slots, notes=notes), in_process)


def resumed_plan(spec: RunSpec, left: Studies, added: Customers, directory: RunDirectory, placement: str) -> Plan:
    """The plan of a run that goes on: what was resolved when it began stays as it was.

    left: studies that have not ended. added: customers that are new, and have a place in the run directory.
    """
    code = OwnCode(spec.definition, directory).loaded()  # what is wrong with the run's copies ends it here, not workers
    studies = learning(spec, make_studies(spec, added, code))
    notes = (*_reading(spec.definition, added), *check_studies(spec, studies, code))
    return Plan(spec, Columnar.joined([left, studies]), _slots(spec.definition), placement, notes)


def with_places(plan: Plan, customers: Customers) -> Plan:
    """The plan after its customers' rows have been given a place."""
    places = places_of(customers_of(plan.studies).texts("id"), customers)
    return replace(plan, studies=plan.studies.with_columns(customer=customers.take(places)))


def _with_placement(plan: Plan, in_process: bool) -> Plan:
    """The plan with its placement chosen, or as the definition says; `PlanError` for a scheduler it does not allow.

    in_process: as of `make_plan`.
    """
    definition = plan.spec.definition
    several = plan.gang is not None
    if several and not in_process:
        check_gangs(definition, plan.studies)
    few = 0 < len(plan.studies) < plan.slots
    own = any(study.resources != definition.resources for study in plan.studies.first_of_each("resources"))
    long = definition.objective is not None or plan.rows_per_trial > MANY_ROWS
    specs = distinct(study.scheduler for study in plan.studies.first_of_each("scheduler"))
    refusal = next(filter(None, map(schedulers.check_spread, specs)), None)
    if definition.placement == SPREAD and refusal:
        raise PlanError(f"{refusal}.")
    if (definition.placement == SPREAD or (several and not in_process)) and plan.spec.transfer:
        raise PlanError("transfer: some customers wait for others, which needs placement: packed; change one of them.")
    plain = refusal is None and definition.compare is None and not own and not plan.spec.transfer
    if in_process:
        alone = "without Ray, this process alone trains what several processes would."
        return replace(plan, notes=(*plan.notes, *[alone] * several))
    chosen = definition.placement == "auto" and few and long and plain and not several
    if not (chosen or several) and definition.placement != SPREAD:
        return replace(plan, notes=(*plan.notes, *idle_slots(specs, len(plan.studies), plan.slots)))
    said = ["spread, because there are fewer studies than slots and trials are long or of unknown length."] * chosen
    said += gang_notes(definition, plan.gang, plan.slots)
    said += ["resources of single customers: no effect, since spread trials all take the definition's."] * own
    pairs = plan.studies.first_of_each("algorithm", "scheduler")
    order = order_matters(((study.algorithm, study.scheduler) for study in pairs), plan.at_once)
    return replace(plan, placement=SPREAD, notes=(*plan.notes, *said, *order))


def _slots(definition: Definition) -> int:
    return definition.slots or len(os.sched_getaffinity(0))


def _reading(definition: Definition, customers: Customers) -> Iterator[str]:
    keyed = customers.take(customers.present("key"))
    tables = len(keyed.first_of_each("table"))
    if definition.by and tables > 1:
        yield (
            f"each of the {tables} files is a table of its own, so a customer is a file and a value of "
            f"{', '.join(definition.by)}; give the folder instead of a pattern to take them as one table."
        )
    if len(keyed) == 1 and keyed[0].key == ():
        yield (
            f"the table has no key columns (`by`), so all its rows are one customer, {definition.name!r} after the "
            "definition's name."
        )
    if (coming := unpartitioned(keyed)).any():
        size = int(keyed.numbers("size")[coming].sum())
        yield f"the data ({size / 1e6:,.1f} MB) is written once into the run directory, divided by customer."
    elif keyed:
        yield "the Parquet data is read where it is, each worker its own customers' rows."


def _copied(definition: Definition, studies: int) -> Iterator[str]:
    chosen = definition.mlflow.record_trials
    if definition.mlflow.enabled and trials_recorded(chosen, studies) != trials_recorded(chosen, 0):
        yield (
            f"mlflow.record_trials: {trials_recorded(chosen, studies)}, because of more than {MANY_STUDIES:,} studies: "
            "MLflow gets each customer's run with its main figures, and the winning trial's. The records keep all "
            "trials. `mlflow: {record_trials: all}` copies them all."
        )


def _shadows() -> Iterator[str]:
    """Modules called like packages in the current folder, which Ray puts first in the import paths of workers."""
    for name in PACKAGES:
        spec = find_spec(name)
        installed = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None
        for path in (Path.cwd() / name / "__init__.py", Path.cwd() / f"{name}.py"):
            if path.is_file() and path.resolve() != installed:
                shown = f"{name}/" if path.name == "__init__.py" else path.name
                yield (
                    f"{shown} in the current folder has the name of a package. Workers here import the package; those "
                    "of a cluster at RAY_ADDRESS would import yours: rename it."
                )
