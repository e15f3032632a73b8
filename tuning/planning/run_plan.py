"""The plan of a run as a value: its studies, where they run, and what to know beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from tuning.basics.timing import HANG_TIMES, hang_seconds
from tuning.basics.wording import amount, better_text, duration, name_list
from tuning.data.customers import about_rows
from tuning.definition.baselines import baseline_name
from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.models.trainers.trainer import TrainWorkers
from tuning.models.worker_group import WorkerGroup
from tuning.notes import Note, Shown
from tuning.notes.note import ordered
from tuning.planning.placement import TRIAL_BYTES, make_batches, slot_bytes
from tuning.planning.worker_groups import largest_group, trial_cpus
from tuning.study import warm_start
from tuning.study.interfaces import Configuration
from tuning.study.study import PACKED, SPREAD, StudyTable, customers_of, family_of, placed


@dataclass(frozen=True, repr=False)
class Plan:
    """The studies of a run and where they run.

    Attributes:
        spec: what every study has in common.
        studies: all of them.
        slots: how many trials run at once.
        workers: of the trainers that an objective makes; None where it makes none.
        notes: what was guessed and found out, what is worth most first.
        helpers: how many processes train each study's trials ahead of its decisions, under schedulers that pause
            trials; 0 for none.
        pool_only: one study, which is never run, of each customer of whom the run's pool alone takes the rows; None
            without such customers.
        without_pool: why the run has no pool; None where it has one.
    """

    spec: RunSpec
    studies: StudyTable
    slots: int
    workers: TrainWorkers | None = None
    notes: tuple[Note, ...] = ()
    helpers: int = 0
    pool_only: StudyTable | None = None
    without_pool: Note | None = None

    def __repr__(self) -> str:
        return self.describe()

    @property
    def placement(self) -> str:
        """The placement of the studies; several are separated by commas."""
        return ", ".join(sorted(self.studies.shared("placement").distinct)) or PACKED

    @cached_property
    def batches(self) -> tuple[np.ndarray, ...]:
        """Positions of packed studies, one group per Tune trial, balanced by size."""
        packed = placed(self.studies, PACKED)
        if packed.all():
            return make_batches(self.studies, self.slots)
        positions = np.flatnonzero(packed)
        return tuple(positions[batch] for batch in make_batches(self.studies.take(positions), self.slots))

    @cached_property
    def spread(self) -> StudyTable:
        """The studies that are spread: each of their trials is a Tune trial."""
        return self.studies.take(placed(self.studies, SPREAD))

    @cached_property
    def trial_resources(self) -> tuple[tuple[Resources, WorkerGroup | None], ...]:
        """Resources of a spread study's trial: of its own process, and of the largest worker group of its models."""
        of_models = self.spec.definition.objective is None
        found = self._with_trial_resources
        return tuple((study.resources, largest_group([study.space]) if of_models else self.workers) for study in found)

    @property
    def _with_trial_resources(self) -> StudyTable:
        """One spread study for each of `Plan.trial_resources`."""
        return self.spread.first_of_each("resources", "space")

    @property
    def worker_group(self) -> WorkerGroup | None:
        """The largest worker group of a trial; None where each trial is trained by one process."""
        return max(
            (worker_group for _, worker_group in self.trial_resources if worker_group),
            key=lambda worker_group: worker_group.cpus,
            default=None,
        )

    def spread_at_once(self, cpus: float) -> int:
        """Return how many trials of spread studies have room, by their CPUs and their memory; one at least.

        cpus: of all machines together.
        """
        largest = TRIAL_BYTES * customers_of(self.spread).numbers("size").max(initial=1)
        return int(max(1, min(self.slots, cpus // self._widest(cpus), self.slots * slot_bytes(self.slots) // largest)))

    def _widest(self, cpus: float) -> float:
        """Return the most CPUs of a spread study's trial, among the trials that these CPUs have room for."""
        taken = [trial_cpus(*each) for each in self.trial_resources]
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
        """The resources of each batch's worker."""
        return [self.studies[batch[0]].resources for batch in self.batches]

    @property
    def fits(self) -> int:
        """The most fits of all trials; of an objective, its trials."""
        return self.n_trials * (1 if self.spec.task is None else self.spec.definition.split.folds)

    def to_dict(self) -> dict[str, object]:
        """The plan's figures as plain values."""
        return {
            "name": self.spec.definition.name,
            "customers": self.customers,
            "studies": len(self.studies),
            "trials": self.n_trials,
            "fits": self.fits,
            "task": self.spec.task,
            "positive": self.spec.positive,
            "metric": self.spec.metric,
            "mode": self.spec.mode,
            "algorithm": _names_of(self, "algorithm"),
            "scheduler": _names_of(self, "scheduler"),
            "portfolio": len(self.portfolio),
            "baseline": baseline_name(self.spec.definition.baseline),
            "placement": self.placement,
            "slots": self.slots,
            "batches": len(self.batches),
            "helpers": self.helpers,
            "notes": [note.to_dict() for note in self.notes],
        }

    @cached_property
    def portfolio(self) -> list[Configuration]:
        """The configurations that studies of the run's search space try first, a given baseline not among them."""
        return warm_start.fitting(self.spec.portfolio, self.spec.space)

    def describe(self) -> str:
        """The plan as text."""
        return _text(self)

    def with_notes(self, notes: Iterable[Note]) -> Plan:
        """Return the plan with more notes, all in the order of their worth."""
        return replace(self, notes=ordered((*self.notes, *notes)))


def _text(plan: Plan) -> str:
    spec = plan.spec
    positive = "" if spec.positive is None else f" (positive class {spec.positive!r})"
    facts = {
        "plan": spec.definition.name,
        "customers": plan.customers,
        "studies": f"{len(plan.studies)} ({_studies(plan)})",
        "trials": _trials(plan),
        "task": f"{spec.task or 'objective'}{positive}",
        "metric": better_text(spec.metric, spec.mode),
        "portfolio": _portfolio(plan),
        "placement": _placement(plan),
        "time limit": _time_limit(plan),
    }
    lines = [f"{name:<12}{value}" for name, value in facts.items() if value is not None]
    return "\n".join([*lines, *(f"note        {note}" for note in plan.notes if note.code.shown is Shown.PLAN)])


def _names_of(plan: Plan, part: str) -> str:
    definition = plan.spec.definition
    if definition.compare is None:
        return str(getattr(definition, part).name)
    return ", ".join(dict.fromkeys(getattr(each, part).name for each in definition.compare.algorithms))


def _studies(plan: Plan) -> str:
    definition = plan.spec.definition
    if (compared := definition.compare) is None:
        names = f"{definition.algorithm.name} searcher and {definition.scheduler.name} scheduler"
        return f"one per customer, each with its own {names}"
    labels = ", ".join(method.label for method in compared.algorithms)
    return f"{amount(compared.seeds, 'seed')} of each of {labels} per customer"


def _trials(plan: Plan) -> str:
    found = np.unique(plan.studies.numbers("n_trials"))  # a manifest may give customers numbers of their own
    each = " to ".join(dict.fromkeys(map(str, (*found[:1], *found[-1:]))))
    fits = "" if plan.spec.task is None else f", up to {amount(plan.fits, 'fit')}"
    return f"{plan.n_trials} ({each} per study){fits}"


def _portfolio(plan: Plan) -> str:
    given, source = plan.spec.definition.baseline, plan.spec.definition.portfolio
    if not plan.portfolio:
        first = "the default configuration" if given is None else baseline_name(given)
        return f"none; the baseline is {first}"
    baseline = family_of(plan.portfolio[0]) if given is None else baseline_name(given)
    shown = f" ({source})" if isinstance(source, str) else ""
    return f"{amount(len(plan.portfolio), 'configuration')}{shown}; the baseline is {baseline}"


def _placement(plan: Plan) -> str:
    packed, spread = len(plan.studies) - len(plan.spread), len(plan.spread)
    helped = f", each with {amount(plan.helpers, 'helper')}," if plan.helpers else ""
    batches = f"{amount(len(plan.batches), 'batch')}{helped} on {amount(plan.slots, 'slot')}"
    trials = f"each trial a Tune trial, {plan.at_once} at once"
    if not spread:
        return f"packed: {batches}, in one run of Ray Tune"
    if not packed:
        return f"spread: {trials}, in one run of Ray Tune"
    one = name_list(plan.spread.texts("id").to_pylist(), 3)
    return f"{one}: spread, {trials}; {amount(packed, 'other')}: packed, {batches}; all in one run of Ray Tune"


def _time_limit(plan: Plan) -> str:
    definition = plan.spec.definition
    if (limit := definition.limits.trial_seconds) is not None:
        return f"{duration(limit)} per trial (limits.trial_seconds)"
    of_objective = definition.objective is not None
    rows = float(about_rows(customers_of(plan.studies)).max(initial=0.0))
    least, most = (duration(hang_seconds(each, of_objective=of_objective)) for each in (0.0, rows))
    allowed = least if least == most else f"{least} to {most} (by its rows)"
    return (
        f"a trial is ended after {allowed} without a step, or {HANG_TIMES} times the longest trial before it, "
        "where that is longer; limits.trial_seconds sets another"
    )
