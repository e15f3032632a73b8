"""Beginning a run, or going on with one: from a definition to a claimed run directory with a plan in it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuning.data.customers import Customer, find_customers
from tuning.data.partition import partition
from tuning.definition.definition import Definition
from tuning.errors import RunError
from tuning.models.entries import freeze_models
from tuning.planning.plan import Plan, make_plan, make_shards, with_places
from tuning.records.lease import Lease, last_heartbeat, wait_until_dead
from tuning.records.ownership import Term, claim, newest_claimed, newest_term, written_by_0_1
from tuning.runs.plan_file import IN_MEMORY, RunSettings, freeze, frozen_definition, read_plan, write_plan
from tuning.runs.resume import RecordedState, hand_over, merge, read_state, same_customers, with_customers
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study
from tuning.user_code import copy_into


@dataclass
class OwnedRun:
    """A run that this process owns: what is to be done, and where.

    plan: of the studies that are left. run: the run's name. lease: held until it is released.
    """

    directory: RunDirectory
    definition: Definition
    plan: Plan
    run: str
    term: Term
    lease: Lease


def begin(definition: Definition, run_dir: str | None = None) -> OwnedRun:
    """Start a new run; `RunError` when the folder holds one already.

    run_dir: default `<storage>/<name>-<time>`.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{slug(definition.name)}-{stamp}-{uuid.uuid4().hex[:4]}"
    directory = RunDirectory(run_dir if run_dir is not None else f"{definition.storage.rstrip('/')}/{name}")
    if newest_term(directory) is not None:
        raise RunError(
            f"{directory.shown} holds a run already. Go on with it by `tuning resume "
            f"{directory.shown}` (or `run --resume`), or choose another folder."
        )
    customers = find_customers(definition)
    plan = make_plan(definition, customers)
    directory.create()
    before = newest_claimed(directory)
    if before is not None:
        wait_until_dead(directory, before)  # somebody began here and did not get as far as a plan
    term = claim(directory, before.number + 1 if before else 1, (), definition.trials, 0.0)
    lease = Lease(directory, term).hold()
    try:
        plan = with_places(plan, partition(definition, customers, directory))
        frozen = definition
        if definition.prepare:
            frozen = definition.model_copy(update={"prepare": copy_into(definition.prepare, directory)})
        if definition.own_metric and definition.metric is not None:
            frozen = frozen.model_copy(update={"metric": copy_into(definition.metric, directory)})
        if definition.models:
            frozen = frozen.model_copy(update={"models": freeze_models(definition.models, directory)})
        freeze(directory, frozen, term)
        run = slug(Path(directory.root).name)
        write_plan(directory, plan, term, run)
    except BaseException:
        lease.release()
        raise
    return OwnedRun(directory, definition, plan, run, term, lease)


def resume_run(directory: RunDirectory, definition: Definition | None = None) -> OwnedRun:
    """Take over a run from its records: finished studies stay, unfinished ones are replayed and go on.

    definition: None goes on as it was begun. Otherwise it may add trials or customers; `RunError` shows what else
    differs.
    """
    last = newest_term(directory)
    if last is None:
        if definition is None:
            raise RunError(f"{directory.shown} is not a run directory: no run has begun there.")
        return begin(definition, directory.uri)
    if written_by_0_1(directory):
        raise RunError(
            f"{directory.shown} was written by version 0.1, whose plan this version cannot resume. Its leaderboard and "
            "models can be read; start a new run in another folder to search further."
        )
    before = frozen_definition(directory, last)
    merged = before if definition is None else merge(directory, before, definition)
    if merged.objective == IN_MEMORY:
        raise RunError(
            f"{directory.shown} tunes a function of the program that began it, which is not in the run. Go on from "
            "that program: TuneRunner(objective=…, …).run(run_dir, resume=True)."
        )
    settings, begun, ended = read_plan(directory, last)
    studies, added = [*begun, *ended], list[Customer]()
    if definition is not None and definition.data is not None and _text(definition.data) != IN_MEMORY:
        studies, added = _look_again(directory, definition, studies)
    owner = newest_claimed(directory) or last
    wait_until_dead(directory, owner)
    state = read_state(directory, last, studies, merged.trials)
    spent = owner.seconds + last_heartbeat(directory, owner).seconds
    term = claim(directory, owner.number + 1, tuple(state.parts), merged.trials, spent)
    lease = Lease(directory, term).hold()
    try:
        plan = _plan_of(directory, merged, state, partition(merged, added, directory), settings)
        freeze(directory, merged, term)
        hand_over(directory, term, plan.shards, plan.studies, state)
        write_plan(directory, plan, term, settings.run, state.ended)
    except BaseException:
        lease.release()
        raise
    return OwnedRun(directory, merged, plan, settings.run, term, lease)


def _look_again(
    directory: RunDirectory, definition: Definition, studies: Sequence[Study]
) -> tuple[list[Study], list[Customer]]:
    """The run's studies with their data where it is now, and the customers that are new."""
    found = find_customers(definition)
    same_customers(directory, studies, found)
    known = {study.customer.id for study in studies}
    added = [customer for customer in found if customer.id not in known]
    # Rows that the run has written for itself stay; what is read in place is read where it is now.
    return with_customers(studies, [customer for customer in found if not customer.unpartitioned]), added


def _plan_of(
    directory: RunDirectory,
    definition: Definition,
    state: RecordedState,
    added: Sequence[Customer],
    settings: RunSettings,
) -> Plan:
    """The plan of what is left; what was resolved when the run began stays as it was."""
    metric = definition.metric if definition.own_metric else settings.metric
    fixed = definition.model_copy(update={"task": settings.task or "auto", "metric": metric})
    new = make_plan(fixed, added, directory)
    studies = (*state.left, *new.studies)
    shards = make_shards(studies, new.slots)
    # An own metric keeps the name that it was begun with; its file is called otherwise in the run.
    plan = replace(new, definition=definition, metric=settings.metric, placement=settings.placement)
    return replace(plan, studies=studies, shards=shards)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
