"""A run's plan: its studies, where they run, and what to know beforehand. It is made without Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

import schedulers
from search_spaces import algorithms
from tuning.basics.columnar import Columnar
from tuning.basics.timing import USUAL, Timing
from tuning.basics.wording import amount, better_text, name_list
from tuning.data.customers import Customer, Customers, find_customers
from tuning.data.prepare_process import PrepareProcess
from tuning.data.prepared import OwnCode
from tuning.definition.baselines import baseline_name
from tuning.definition.cpus import default_slots
from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError, StorageError
from tuning.models.gang import Gang
from tuning.models.trainers.trainer import TrainWorkers, workers_of
from tuning.notes import Note
from tuning.notes.note import as_notes
from tuning.planning.algorithm_notes import order_matters
from tuning.planning.allowance import check_allowance
from tuning.planning.column_names import check_columns
from tuning.planning.column_values import check_values
from tuning.planning.gangs import gang_notes, largest_gang, trial_cpus, with_gang
from tuning.planning.model_process import ModelProcess
from tuning.planning.no_effect import idle_settings
from tuning.planning.placement import TRIAL_BYTES, placements, slot_bytes, waiting
from tuning.planning.pool_notes import OFF, pool_notes
from tuning.planning.populations import helper_notes, helpers_of
from tuning.planning.resolution import resolve
from tuning.planning.run_notes import place_notes, reading_notes, run_notes, time_limit_text
from tuning.planning.run_time import RunTime
from tuning.planning.shards import make_shards
from tuning.planning.studies import (
    NONE_FIXED,
    Fixed,
    at_places,
    check_fixed,
    check_studies,
    distinct,
    make_studies,
    studies_beside,
)
from tuning.storage.backend import check_writable
from tuning.storage.run_directory import RunDirectory
from tuning.study import warm_start
from tuning.study.interfaces import Configuration
from tuning.study.study import PACKED, SPREAD, StudyTable, customers_of, family_of, placed
from tuning.user_code import exits_raised, settings_put_back


@dataclass(frozen=True, repr=False)
class Plan:
    """The studies of a run and where they run.

    Attributes:
        spec: what every study has in common.
        studies: all of them.
        slots: how many trials run at once.
        workers: of the trainers that an objective makes; None where it makes none.
        notes: what was chosen and found out, in the order in which it is shown.
        helpers: how many processes train each study's trials ahead of its decisions, under schedulers that pause
            trials; 0 for none.
        beside: as of `studies_beside`, for the run's pool.
        estimate: tells how long the run will take, a matter of seconds; None where nobody asks.
    """

    spec: RunSpec
    studies: StudyTable
    slots: int
    workers: TrainWorkers | None = None
    notes: tuple[Note, ...] = ()
    helpers: int = 0
    beside: StudyTable | None = None
    estimate: Callable[[Plan], RunTime] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return self.describe()

    @property
    def placement(self) -> str:
        """The placement of the studies; several are separated by commas."""
        return ", ".join(sorted(self.studies.shared("placement").distinct)) or PACKED

    @cached_property
    def shards(self) -> tuple[np.ndarray, ...]:
        """Positions of packed studies, one group per Tune trial, balanced by size."""
        packed = placed(self.studies, PACKED)
        if packed.all():
            return make_shards(self.studies, self.slots)
        positions = np.flatnonzero(packed)
        return tuple(positions[shard] for shard in make_shards(self.studies.take(positions), self.slots))

    @cached_property
    def spread(self) -> StudyTable:
        """The studies that are spread: each of their trials is a Tune trial."""
        return self.studies.take(placed(self.studies, SPREAD))

    @cached_property
    def takes(self) -> tuple[tuple[Resources, Gang | TrainWorkers | None], ...]:
        """Resources of a spread study's trial: of its own process, and of the largest gang of its models."""
        of_models = self.spec.definition.objective is None
        found = self._with_takes
        return tuple((study.resources, largest_gang([study.space]) if of_models else self.workers) for study in found)

    @property
    def _with_takes(self) -> StudyTable:
        """One spread study for each of `takes`."""
        return self.spread.first_of_each("resources", "space")

    @property
    def gang(self) -> Gang | TrainWorkers | None:
        """The largest gang of a trial; None where each trial is trained by one process."""
        return max((gang for _, gang in self.takes if gang), key=lambda gang: gang.cpus, default=None)

    def spread_at_once(self, cpus: float) -> int:
        """How many trials of spread studies have room, by their CPUs and their memory; one at least.

        cpus: of all machines together.
        """
        largest = TRIAL_BYTES * customers_of(self.spread).numbers("size").max(initial=1)
        return int(max(1, min(self.slots, cpus // self._widest(cpus), self.slots * slot_bytes(self.slots) // largest)))

    def _widest(self, cpus: float) -> float:
        """The most CPUs of a spread study's trial, among the trials that these CPUs have room for."""
        taken = [trial_cpus(*takes) for takes in self.takes]
        return max((each for each in taken if each <= cpus), default=max(taken, default=1.0))

    @property
    def at_once(self) -> int:
        """How many trials of spread studies this machine has room for."""
        return self.spread_at_once(self.slots)

    @property
    def customers(self) -> int:
        """The number of customers of the studies."""
        return int(pc.count_distinct(customers_of(self.studies).texts("id")).as_py())

    @property
    def n_trials(self) -> int:
        """The number of trials of all studies."""
        return int(self.studies.numbers("n_trials").sum())

    @property
    def resources(self) -> list[Resources]:
        """The resources of each shard's worker."""
        return [self.studies[shard[0]].resources for shard in self.shards]

    @property
    def time_limit(self) -> str:
        """The time limit of a trial, as a sentence."""
        return time_limit_text(self.spec.definition, self.studies)

    @cached_property
    def run_time(self) -> RunTime | None:
        """How long the run will take; made when it is asked for."""
        return None if self.estimate is None else self.estimate(self)

    def to_dict(self) -> dict[str, object]:
        """The plan's figures as plain values; seconds are those of the whole run."""
        return {
            "name": self.spec.definition.name,
            "customers": self.customers,
            "studies": len(self.studies),
            "trials": self.n_trials,
            "task": self.spec.task,
            "positive": self.spec.positive,
            "metric": self.spec.metric,
            "mode": self.spec.mode,
            "algorithm": self._names("algorithm"),
            "scheduler": self._names("scheduler"),
            "portfolio": len(self.portfolio),
            "baseline": baseline_name(self.spec.definition.baseline),
            "placement": self.placement,
            "slots": self.slots,
            "shards": len(self.shards),
            "helpers": self.helpers,
            "seconds": None if self.run_time is None else self.run_time.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }

    @cached_property
    def portfolio(self) -> list[Configuration]:
        """The configurations that studies of the run's search space try first, a given baseline not among them."""
        return warm_start.fitting(self.spec.portfolio, self.spec.space)

    @property
    def _portfolio_text(self) -> str:
        given = self.spec.definition.baseline
        if not self.portfolio:
            first = "the default configuration" if given is None else baseline_name(given)
            return f"none; the baseline is {first}"
        portfolio = self.spec.definition.portfolio
        source = f" ({portfolio})" if isinstance(portfolio, str) else ""
        baseline = family_of(self.portfolio[0]) if given is None else baseline_name(given)
        number = amount(len(self.portfolio), "configuration")
        return f"{number}{source}; the baseline is {baseline}"

    @property
    def _positive(self) -> str:
        return "" if self.spec.positive is None else f" (positive class {self.spec.positive!r})"

    def _placement_text(self) -> str:
        packed, spread = len(self.studies) - len(self.spread), len(self.spread)
        helped = f", each with {amount(self.helpers, 'helper')}," if self.helpers else ""
        shards = f"{amount(len(self.shards), 'shard')}{helped} on {amount(self.slots, 'slot')}"
        trials = f"each trial a Tune trial, {self.at_once} at once"
        if not spread:
            return f"packed: {shards}, in one run of Ray Tune"
        if not packed:
            return f"spread: {trials}, in one run of Ray Tune"
        one = name_list(self.spread.texts("id").to_pylist(), 3)
        return f"{one}: spread, {trials}; {amount(packed, 'other')}: packed, {shards}; all in one run of Ray Tune"

    def _names(self, part: str) -> str:
        if self.spec.definition.compare is None:
            return str(getattr(self.spec.definition, part).name)
        return ", ".join(dict.fromkeys(getattr(each, part).name for each in self.spec.definition.compare.algorithms))

    @property
    def _studies_text(self) -> str:
        compared = self.spec.definition.compare
        if compared is None:
            names = (
                f"{self.spec.definition.algorithm.name} searcher and {self.spec.definition.scheduler.name} scheduler"
            )
            return f"one per customer, each with its own {names}"
        labels = ", ".join(method.label for method in compared.algorithms)
        return f"{amount(compared.seeds, 'seed')} of each of {labels} per customer"

    @property
    def _trials_text(self) -> str:
        """A manifest may give customers numbers of their own."""
        found = np.unique(self.studies.numbers("n_trials"))
        return " to ".join(dict.fromkeys(map(str, (*found[:1], *found[-1:]))))

    def describe(self) -> str:
        """The plan as text."""
        facts = self.to_dict()
        lines = [
            f"plan        {facts['name']}",
            f"customers   {facts['customers']}",
            f"studies     {facts['studies']} ({self._studies_text})",
            f"trials      {facts['trials']} ({self._trials_text} per study)",
            f"task        {facts['task'] or 'objective'}{self._positive}",
            f"metric      {better_text(self.spec.metric, self.spec.mode)}",
            f"portfolio   {self._portfolio_text}",
            f"placement   {self._placement_text()}",
        ]
        lines += [] if self.run_time is None else [f"duration    {self.run_time}"]
        lines.append(f"time limit  {self.time_limit}")
        lines += [f"note        {note}" for note in self.notes]
        return "\n".join(lines)


def make_plan(
    definition: Definition,
    customers: Sequence[Customer] | None = None,
    timing: Timing = USUAL,
    *,
    in_process: bool = False,
    run_dir: str | Path | None = None,
    fixed: Fixed = NONE_FIXED,
) -> Plan:
    """The plan of a definition for this machine; `PlanError` says what cannot work.

    customers: default those that the definition's data has. timing: limits of the look at one customer. in_process: one
    trial after another, whatever `placement` the definition has, and the user's code in this process, for a debugger.
    run_dir: default a folder in `storage`. fixed: by customer, what is fitted in place of a search.
    """
    refusal = schedulers.check(definition.scheduler, definition.algorithm.name, algorithms.unlearning())
    if refusal and definition.compare is None:
        raise PlanError(refusal)
    if refusal := definition.mlflow.refusal():
        raise PlanError(refusal)
    try:
        check_writable(definition.storage if run_dir is None else str(run_dir))
    except StorageError as error:
        raise PlanError(str(error)) from error
    found = Columnar.of(Customer, customers) if customers is not None else find_customers(definition)
    with (
        PrepareProcess(definition.prepare, timing.prepare_s) as process,
        ModelProcess(timing.prepare_s, in_process) as models,
    ):
        models.check_built(definition.models)
        with exits_raised(), settings_put_back() if in_process else nullcontext():
            code = OwnCode(definition, process=None if in_process else process).loaded()
            columns = check_columns(definition, found, code)
            check_values(definition, found, code)
            spec, chosen = resolve(definition, found, code)
        known = check_fixed(definition, fixed, set(found.texts("id").to_pylist()) if fixed else ())
        studies = make_studies(spec, found, code, fixed)
        beside = None if definition.pool == OFF else studies_beside(spec, found, studies, code)
        check_allowance(studies)
        checked = check_studies(spec, studies, code, models)
    lost = [f"customer {name!r} was left out of what is guessed: {why}." for name, why in process.lost.items()]
    if definition.warm_start and not definition.customers:
        warm_start.check_customers(definition.warm_start, set(found.texts("id").to_pylist()))
    slots = definition.slots or default_slots()
    idle = idle_settings(spec, distinct(study.scheduler for study in studies.first_of_each("scheduler")), code)
    notes: tuple[Note | str, ...] = (
        *reading_notes(definition, found),
        *place_notes(found),
        *columns,
        *lost,
        *chosen,
        *checked,
        *known,
        *idle,
        *pool_notes(definition, studies, beside),
        *run_notes(definition, studies, slots, in_process=in_process),
    )
    workers = workers_of(code.objective)
    plan = Plan(spec=spec, studies=studies, slots=slots, workers=workers, notes=as_notes(notes), beside=beside)
    return _placed(plan, code, in_process)


def resumed_plan(
    spec: RunSpec,
    left: StudyTable,
    added: Customers,
    directory: RunDirectory,
    *,
    in_process: bool = False,
    fixed: Fixed = NONE_FIXED,
) -> Plan:
    """The plan of a run that goes on: what was resolved when it began stays as it was.

    left: studies that have not ended. added: customers that are new, and have a place in the run directory. in_process:
    as of `make_plan`; of these only, the others stay where they are. fixed: as of `make_plan`, of these only.
    """
    code = OwnCode(spec.definition, directory).loaded()  # what is wrong with the run's copies ends it here, not workers
    studies = make_studies(spec, added, code, fixed)
    with ModelProcess(USUAL.prepare_s, in_process) as models:
        notes = (*reading_notes(spec.definition, added), *check_studies(spec, studies, code, models))
    slots, workers = spec.definition.slots or default_slots(), workers_of(code.objective)
    everyone = Columnar.joined([left, studies])
    check_allowance(everyone)
    if added and not in_process:
        column = placements(spec, everyone, slots, workers).column
        studies = studies.with_columns(placement=column.take(np.arange(len(left), len(everyone))))
    plan = Plan(spec, Columnar.joined([left, studies]), slots, workers, as_notes(notes))
    return plan if plan.spread else _with_helpers(plan, code)


def with_places(plan: Plan, customers: Customers) -> Plan:
    """The plan after its customers' rows have been given a place."""
    beside = None if plan.beside is None else at_places(plan.beside, customers)
    return replace(plan, studies=at_places(plan.studies, customers), beside=beside)


def _with_helpers(plan: Plan, code: OwnCode) -> Plan:
    """A packed plan with the helpers of its studies, and notes on them."""
    specs, count = distinct(study.scheduler for study in plan.studies.first_of_each("scheduler")), len(plan.studies)
    helpers = helpers_of(plan.spec, specs, plan.studies, code.objective, len(plan.shards), plan.slots)
    notes = helper_notes(specs, helpers, count, plan.slots, code.objective)
    return replace(plan, helpers=helpers, notes=(*plan.notes, *as_notes(notes)))


def _placed(plan: Plan, code: OwnCode, in_process: bool) -> Plan:
    """The plan with its studies placed; `PlanError` where that cannot be. in_process: as of `make_plan`."""
    definition, studies = plan.spec.definition, plan.studies
    if in_process:
        if plan.workers is not None:
            raise PlanError(
                "objective: it makes trainers of Ray Train, and these need Ray; run it without --in-process."
            )
        alone = "without Ray, this process alone trains what several processes would."
        several = with_gang(definition, studies, None).any()
        return replace(plan, notes=(*plan.notes, *as_notes([alone] * bool(several))))
    found = placements(plan.spec, studies, plan.slots, plan.workers)
    placed = replace(plan, studies=studies.with_columns(placement=found.column))
    pairs = placed.spread.first_of_each("algorithm", "scheduler")
    notes = [*found.notes(studies, plan.slots), *gang_notes(definition, placed._with_takes, placed.takes, plan.slots)]
    gang = placed._widest(plan.slots) if placed.gang else 0.0
    notes += order_matters(((study.algorithm, study.scheduler) for study in pairs), placed.at_once, gang)
    widest = placed._widest(plan.slots) if placed.spread else 0.0
    notes += waiting(placed.spread, len(studies), plan.slots, widest)
    placed = replace(placed, notes=(*plan.notes, *as_notes(notes)))
    return placed if placed.spread else _with_helpers(placed, code)
