"""Making the plan of a run, without Ray."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import tee
from pathlib import Path

import numpy as np

import schedulers
from search_spaces import algorithms
from tuning.basics.columnar import Columnar
from tuning.basics.timing import USUAL, Timing
from tuning.data.child_process import PrepareProcess
from tuning.data.customers import Customer, Customers, find_customers
from tuning.data.file_access import read_once
from tuning.data.sampling import sample_frames
from tuning.definition.cpus import default_slots
from tuning.definition.definition import Definition
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError, StorageError
from tuning.models.trainers.trainer import workers_of
from tuning.notes import Note, PlanCode
from tuning.planning.capacity import check_allowance
from tuning.planning.columns import check_columns, check_values
from tuning.planning.model_process import ModelProcess
from tuning.planning.placement import placements
from tuning.planning.plan_notes import OFF, check_shared_folder, data_notes, machine_notes, too_large, why_no_pool
from tuning.planning.populations import helpers_of, idle_slots
from tuning.planning.resolution import resolve
from tuning.planning.run_plan import Plan
from tuning.planning.search_checks import check_settings
from tuning.planning.studies import (
    NONE_FIXED,
    Fixed,
    at_places,
    check_fixed,
    check_studies,
    distinct,
    make_studies,
    pool_only_studies,
)
from tuning.planning.worker_groups import group_notes
from tuning.storage.backend import check_writable
from tuning.storage.run_directory import RunDirectory
from tuning.study import warm_start
from tuning.study.customer_data import OwnCode
from tuning.study.study import StudyTable
from tuning.user_code import exits_raised, settings_put_back


@read_once()
def make_plan(
    definition: Definition,
    customers: Sequence[Customer] | None = None,
    timing: Timing = USUAL,
    *,
    in_process: bool = False,
    run_dir: str | Path | None = None,
    fixed: Fixed = NONE_FIXED,
) -> Plan:
    """Return the plan of a definition for this machine; `PlanError` says what cannot work.

    customers: default those that the definition's data has. timing: limits of the look at one customer. in_process: one
    trial after another, whatever `placement` the definition has, and the user's code in this process, for a debugger.
    run_dir: default a folder in `storage`. fixed: by customer, what is fitted in place of a search.
    """
    folder = definition.storage if run_dir is None else run_dir
    _check_beforehand(definition, str(folder))
    found = Columnar.of(Customer, customers) if customers is not None else find_customers(definition)
    with (
        PrepareProcess(definition.prepare, timing.prepare_s) as process,
        ModelProcess(timing.prepare_s, in_process) as models,
    ):
        models.check_built(definition.models)
        code = OwnCode(definition, process=None if in_process else process)
        with exits_raised(), settings_put_back() if in_process else nullcontext():
            spec, notes = _looked_at(definition, found, code.loaded())
        plan = _with_studies(spec, found, code, fixed, folder)
        notes += check_studies(spec, plan.studies, code, models)
    if definition.warm_start and not definition.customers:
        warm_start.check_customers(definition.warm_start, set(found.texts("id").to_pylist()))
    lost = [PlanCode.NOT_SAMPLED(name, why=why) for name, why in process.lost.items()]
    plan = plan.with_notes([*data_notes(definition, found), *notes, *lost, *machine_notes(definition, plan.n_trials)])
    if not in_process:
        return _placed(plan, code)
    if plan.workers is not None:
        raise PlanError("objective: it makes trainers of Ray Train, and these need Ray; run it without --in-process.")
    return plan


def _looked_at(definition: Definition, customers: Customers, code: OwnCode) -> tuple[RunSpec, list[Note]]:
    """Return what a look at some customers' columns and targets has resolved, and notes on them."""
    of_columns, of_values, of_targets = tee(sample_frames(definition, customers, code.frame), 3)  # each read once
    notes = check_columns(definition, customers, of_columns)
    check_values(definition, of_values)
    spec, chosen = resolve(definition, customers, code, of_targets)
    check_settings(spec)
    return spec, [*notes, *chosen]


def _with_studies(spec: RunSpec, customers: Customers, code: OwnCode, fixed: Fixed, folder: str | Path) -> Plan:
    """Return a plan of the customers' studies, with a note where it has not the pool that is asked for.

    fixed: see `make_plan`. folder: of the run, or of all runs.
    """
    definition = spec.definition
    check_fixed(definition, fixed, set(customers.texts("id").to_pylist()) if fixed else ())
    studies = make_studies(spec, customers, code, fixed)
    check_allowance(studies)
    check_shared_folder(definition, studies, folder)
    slots, workers = definition.slots or default_slots(), workers_of(code.objective)
    if definition.pool == OFF:
        return Plan(spec, studies, slots, workers)
    pool_only = pool_only_studies(spec, customers, studies, code)
    why = why_no_pool(definition, studies, pool_only)
    plan = Plan(spec, studies, slots, workers, pool_only=pool_only, without_pool=why)
    return plan if why is None else plan.with_notes([PlanCode.POOL_OFF_HERE(pool=definition.pool, why=why)])


def _check_beforehand(definition: Definition, folder: str) -> None:
    """Raise `PlanError` for a pair of searcher and scheduler, a tracking URI or a folder that cannot work."""
    refusal = schedulers.check(definition.scheduler, definition.algorithm.name, algorithms.unlearning())
    if refusal and definition.compare is None:
        raise PlanError(refusal)
    if refusal := definition.mlflow.refusal():
        raise PlanError(refusal)
    try:
        check_writable(folder)
    except StorageError as error:
        raise PlanError(str(error)) from error


def resumed_plan(
    spec: RunSpec,
    left: StudyTable,
    added: Customers,
    directory: RunDirectory,
    *,
    in_process: bool = False,
    fixed: Fixed = NONE_FIXED,
) -> Plan:
    """Return the plan of a run that goes on: what was resolved when it began stays as it was.

    left: studies that have not ended. added: customers that are new, and have a place in the run directory. in_process:
    see `make_plan`; of these only, the others stay where they are. fixed: see `make_plan`, of these only.
    """
    code = OwnCode(spec.definition, directory).loaded()  # what is wrong with the run's copies ends it here, not workers
    studies = make_studies(spec, added, code, fixed)
    check_shared_folder(spec.definition, studies, directory.uri)
    with ModelProcess(USUAL.prepare_s, in_process) as models:
        notes = [*data_notes(spec.definition, added), *check_studies(spec, studies, code, models)]
    slots, workers = spec.definition.slots or default_slots(), workers_of(code.objective)
    everyone = Columnar.joined([left, studies])
    check_allowance(everyone)
    if added and not in_process:
        column, _ = placements(spec, everyone, slots, workers)
        studies = studies.with_columns(placement=column.take(np.arange(len(left), len(everyone))))
    plan = Plan(spec, Columnar.joined([left, studies]), slots, workers).with_notes(notes)
    return plan if plan.spread else _with_helpers(plan, code)


def with_places(plan: Plan, customers: Customers) -> Plan:
    """Return the plan after its customers' rows have been given a place."""
    pool_only = None if plan.pool_only is None else at_places(plan.pool_only, customers)
    return replace(plan, studies=at_places(plan.studies, customers), pool_only=pool_only)


def _with_helpers(plan: Plan, code: OwnCode) -> Plan:
    """Return a packed plan with the helpers of its studies, or a note on the slots that they leave free."""
    specs, count = distinct(study.scheduler for study in plan.studies.first_of_each("scheduler")), len(plan.studies)
    helpers = helpers_of(plan.spec, specs, plan.studies, code.objective, len(plan.batches), plan.slots)
    idle = () if helpers else idle_slots(specs, count, plan.slots, code.objective)
    return replace(plan, helpers=helpers).with_notes(idle)


def _placed(plan: Plan, code: OwnCode) -> Plan:
    """Return the plan with its studies placed; `PlanError` where that cannot be."""
    definition, studies = plan.spec.definition, plan.studies
    column, small = placements(plan.spec, studies, plan.slots, plan.workers)
    placed = replace(plan, studies=studies.with_columns(placement=column))
    worker_groups = group_notes(placed._with_trial_resources, placed.trial_resources, plan.slots)
    placed = placed.with_notes([*small, *worker_groups, *too_large(definition, studies, plan.slots)])
    return placed if placed.spread else _with_helpers(placed, code)
