"""Beginning a run, or going on with one: from a definition to a claimed run directory with a plan in it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from search_spaces import SearchSpace
from tuning.basics.columnar import Columnar, constant
from tuning.basics.timing import USUAL, Timing
from tuning.basics.wording import resume_advice
from tuning.data.customers import find_customers, one_each
from tuning.data.file_access import read_once
from tuning.data.fingerprints import digested
from tuning.data.partition import partition
from tuning.definition.definition import Definition
from tuning.definition.plain_values import IN_MEMORY
from tuning.definition.run_spec import RunSpec
from tuning.errors import RunError
from tuning.models.entries import freeze_models
from tuning.models.pooled import RunPool
from tuning.planning.plan import make_plan, resumed_plan, with_places
from tuning.planning.run_plan import Plan
from tuning.planning.studies import NONE_FIXED, Fixed
from tuning.records.lease import Lease, last_heartbeat, wait_until_dead
from tuning.records.ownership import (
    TERMS,
    Term,
    begun_term,
    check_plan,
    claim,
    newest_claimed,
    newest_term,
)
from tuning.records.parts import STUDIES
from tuning.records.schema import FAILED, FINISHED
from tuning.records.tables import no_rows
from tuning.runs.data_now import look_at_data, with_customers
from tuning.runs.plan_file import freeze, read_plan, read_spec, write_plan
from tuning.runs.pool_file import pool_is_due, write_pool
from tuning.runs.resume import (
    STUDY_COLUMNS,
    check_order,
    hand_over,
    merge,
    with_libraries_now,
    without_gaps,
)
from tuning.runs.trusted_code import trust
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import PACKED, StudyTable, customers_of
from tuning.user_code import copy_into


@dataclass
class OwnedRun:
    """A run that this process owns: what is to be done, and where.

    Attributes:
        directory: where it lies.
        plan: of the studies that are left, and what they have in common.
        run: the run's name.
        term: of this owner.
        lease: held until it is released.
        timing: how long the run waits for what.
        recorded: trials that earlier owners have recorded of the studies that are left.
        failed: how many of these have failed.
        best: score of those that are full; None without any.
        ended: records of the studies that ended under earlier owners, in the columns of `STUDY_COLUMNS`.
        customers: of the run, those of ended studies included.
    """

    directory: RunDirectory
    plan: Plan
    run: str
    term: Term
    lease: Lease
    timing: Timing = USUAL
    recorded: int = 0
    best: float | None = None
    failed: int = 0
    ended: pa.Table = field(default_factory=lambda: no_rows(STUDIES, STUDY_COLUMNS))
    customers: int = 0

    @property
    def pool_is_due(self) -> bool:
        """Whether the run's pool is to be trained, before all else."""
        return pool_is_due(self.directory, self.plan.spec.definition)

    def resume_advice(self, change: str = "") -> str:
        """Return how to resume this run. change: a key of the definition that needs a larger value."""
        by_runner = callable(self.plan.spec.definition.objective)  # only its own program has the function
        return resume_advice(self.directory.shown, change=change, by_runner=by_runner)


@read_once()
def begin(
    definition: Definition,
    run_dir: str | Path | None = None,
    timing: Timing = USUAL,
    *,
    in_process: bool = False,
    fixed: Fixed = NONE_FIXED,
) -> OwnedRun:
    """Start a new run; `RunError` when the folder holds one already, or something else.

    A definition that is refused on the way leaves nothing behind.

    run_dir: default `<storage>/<name>-<time>`. in_process, fixed: see `make_plan`.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{slug(definition.name, cased=True)}-{stamp}-{uuid.uuid4().hex[:4]}"
    directory = RunDirectory(run_dir if run_dir is not None else f"{definition.storage.rstrip('/')}/{name}", timing)
    if newest_term(directory) is not None:
        raise RunError(
            f"{directory.shown} already holds a run. Resume it with {resume_advice(directory.shown, by_runner=True)}, "
            "or choose another folder."
        )
    before = newest_claimed(directory)
    if before is None and not directory.is_empty(besides=TERMS):
        raise RunError(f"{directory.shown} holds files that are of no run. Choose an empty folder, or a new one.")
    if before is not None:
        check_plan(directory, before)  # else what is recorded there would be lost
    customers = find_customers(definition)
    plan = make_plan(definition, customers, timing, in_process=in_process, run_dir=run_dir, fixed=fixed)
    directory.create()
    if before is not None:
        wait_until_dead(directory, before, timing)  # somebody began here and did not get as far as a plan
    term = claim(directory, before.number + 1 if before else 1, (), definition.trials, 0.0)
    lease = Lease(directory, term, timing).hold()
    try:
        plan = with_places(plan, partition(definition, digested(definition, customers), directory))
        kept = _with_code_inside(definition, directory)
        plan = replace(plan, spec=replace(plan.spec, definition=kept))
        run = slug(Path(directory.root).name, cased=True)
        _write(directory, plan, term, run)
    except BaseException as error:
        lease.release()
        if isinstance(error, Exception):
            abandon(directory, term)
        raise
    return OwnedRun(directory, plan, run, term, lease, timing, customers=plan.customers)


def _write(directory: RunDirectory, plan: Plan, term: Term, run: str, ended: StudyTable | tuple[()] = ()) -> None:
    """Write a term's definition and plan, and down that there is no pool where the plan says so; trust the code."""
    definition = plan.spec.definition
    freeze(directory, definition, term)
    write_plan(directory, plan, term, run, ended)
    if plan.without_pool is not None and pool_is_due(directory, definition):
        write_pool(directory, RunPool(plan.without_pool))
    trust(definition, directory)


def abandon(directory: RunDirectory, term: Term) -> None:
    """Delete a run that its first owner could not begin, so that its folder can be used again."""
    newest = newest_claimed(directory)
    if term.number == 1 and newest is not None and newest.folder == term.folder:
        directory.discard()


def _with_code_inside(definition: Definition, directory: RunDirectory) -> Definition:
    """Return the definition after the user's code has been copied into the run, under the names that it has there."""
    inside: dict[str, object] = {key: copy_into(name, directory) for key, name in definition.own_functions.items()}
    if definition.models:
        inside["models"] = freeze_models(definition.models, directory)
    return definition.model_copy(update=inside)


def _with_constraints(begun: RunSpec, merged: Definition) -> SearchSpace:
    """Return the run's space with the constraints that the definition has in memory, which no file brings back."""
    given = merged.search_space
    return SearchSpace(begun.space.parameters, given.constraints) if isinstance(given, SearchSpace) else begun.space


def resume_run(
    directory: RunDirectory,
    definition: Definition | None = None,
    timing: Timing = USUAL,
    *,
    in_process: bool = False,
    fixed: Fixed = NONE_FIXED,
) -> OwnedRun:
    """Take over a run from its records: finished studies stay, unfinished ones are replayed and go on.

    definition: None goes on as it was begun. Otherwise it may add trials or customers; `RunError` shows what else
    differs. in_process: one trial after another from now on; `RunError` where trials have overlapped. fixed: see
    `make_plan`, for customers who are new; those of the run keep what they began with.
    """
    last = newest_term(directory)
    if last is None:
        if definition is not None:
            return begin(definition, directory.uri, timing, in_process=in_process, fixed=fixed)
        last = begun_term(directory)  # which says what the folder holds instead
    begun = read_spec(directory, last)
    merged = begun.definition if definition is None else merge(directory, begun.definition, definition)
    if merged.objective == IN_MEMORY:
        raise RunError(
            f"{directory.shown} tunes a function of the program that started it, which is not in the run. Resume "
            "it from that program: TuneRunner(objective=…, …).run(run_dir, resume=True)."
        )
    recorded = read_plan(directory, last, replace(begun, definition=merged, space=_with_constraints(begun, merged)))
    look = look_at_data(directory, merged, definition, Columnar.joined([recorded.studies, recorded.ended]))
    owner = newest_claimed(directory) or last
    wait_until_dead(directory, owner, timing)
    state = look.state(directory, last, merged)
    state = with_libraries_now(directory, merged, state)
    if in_process:
        check_order(directory, state)
        state = replace(state, left=state.left.with_columns(placement=constant(PACKED, len(state.left))))
    state = without_gaps(directory, state)
    spent = owner.seconds + last_heartbeat(directory, owner).seconds
    term = claim(directory, owner.number + 1, tuple(state.parts), merged.trials, spent)
    lease = Lease(directory, term, timing).hold()
    try:
        placed = partition(merged, Columnar.joined([look.added, look.changed]), directory)
        added, changed = placed[: len(look.added)], placed[len(look.added) :]
        left = with_customers(state.left, changed)
        plan = resumed_plan(recorded.spec, left, added, directory, in_process=in_process, fixed=fixed)
        plan = replace(plan, without_pool=recorded.without_pool).with_notes(recorded.notes)
        hand_over(directory, term, plan.batches, plan.studies, state)
        _write(directory, plan, term, recorded.run, state.ended)
    except BaseException:
        lease.release()
        raise
    full = state.trials["score"].filter(pc.equal(state.trials["state"], FINISHED))
    best = (pc.max if plan.spec.mode == "max" else pc.min)(full).as_py()
    failed = pc.sum(pc.equal(state.trials["state"], FAILED), min_count=0).as_py()
    return OwnedRun(
        directory,
        plan,
        recorded.run,
        term,
        lease,
        timing,
        recorded=len(state.trials),
        best=best,
        failed=failed,
        ended=state.ended_records,
        customers=len(one_each(customers_of(Columnar.joined([plan.studies, state.ended])))),
    )
