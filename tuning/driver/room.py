"""What no machine of the cluster has room for: refused, waited for, or the reason of the customers that ask for it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from search_spaces import SearchSpace
from tuning.columnar import Shared, combined
from tuning.definition.options import Resources
from tuning.errors import PlanError, RunError
from tuning.evaluation.winner import StudyOutcome
from tuning.execution.context import WorkerContext
from tuning.execution.jobs import PACK
from tuning.execution.packed import recorded
from tuning.execution.room import Bundle, alive_machines, has_room
from tuning.execution.spread.journal import DRIVER, written_by_driver
from tuning.execution.study_run import Clock, study_record
from tuning.models.gang import Gang
from tuning.models.registry import families
from tuning.planning.gangs import gang_key, gangs_in, largest_gang
from tuning.planning.plan import Plan
from tuning.planning.room import ids_of
from tuning.records.parts import PartWriter, accepted, read_trials
from tuning.records.reports import Listener
from tuning.records.schema import NO_MODEL, TrialRecord
from tuning.runs.begin import OwnedRun
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import PACKED, SPREAD, StudyTable, customers_of, placed
from tuning.trainers.trainer import TrainWorkers
from tuning.wording import name_list

logger = logging.getLogger(__name__)

LARGER = "request less, or search it where there is a larger machine"
A_FOLDER = "give one, or take `xgboost` with `actors`"
UNITS = {"cpu": ("CPU", 1), "gpu": ("GPU", 1), "memory": ("GB memory", 1e9)}


@dataclass(frozen=True)
class Lack:
    """What some studies ask for and no machine has.

    Attributes:
        key: where it is asked for.
        of_run: whether the definition asks for it; else single customers do.
        why: the beginning of a sentence.
        way: out of it, the sentence's end.
        of_gang: whether it is room for several processes side by side.
        of_folder: whether it is a run directory that their actors can read, which no machine that joins a cluster has.
    """

    key: str
    of_run: bool
    why: str
    way: str
    of_gang: bool = False
    of_folder: bool = False


def make_room(owned: OwnedRun, report: Listener) -> frozenset[Resources]:
    """What nobody is to wait for: customers who ask for more than there is get that as their reason.

    `PlanError` when all of them do, or the run itself does; `RunError` when such a customer has trials already, which
    its reason would end. So it is with actors that cannot read their rows. report: told of what is recorded here. What
    comes back are the resources of shards that are not to begin.
    """
    lacks = without_room(owned.plan, owned.directory, owned.timing.room_s)
    if lacks is None:
        return frozenset()
    context, writers = WorkerContext.open(owned.directory, owned.run, owned.plan.spec), []
    for number, studies, why in _asking(owned.plan, lacks):
        known, finished = recorded(owned.directory, owned.term, number)
        begun = {*known, *(record.study for record in _spread_trials(owned) if number == DRIVER)}
        left = [(study, lack) for study, lack in zip(studies, why, strict=True) if study.id not in finished]
        for study, lack in left:
            if study.id in begun:
                where = "in such a folder" if lack.of_folder else "where there is a larger machine"
                begun_by = f"customer {study.customer.id!r} has trials already"
                raise RunError(f"{begun_by}, and now {lack.why}. Resume {where}.")
        budgets = {study.id: study.budget for study, _ in left}
        writer = PartWriter(owned.directory, owned.term, number, report, budgets=budgets)
        for study, lack in left:
            outcome = StudyOutcome(None, None, f"{lack.key}: {lack.why}; {lack.way}")
            writer.add([study_record(context, study, [], NO_MODEL, outcome, Clock())])
        writers.append(writer)
    for writer in writers:
        writer.flush()
    packed = owned.plan.studies.take(_lacking(lacks) & placed(owned.plan.studies, PACKED))
    return frozenset(packed.shared("resources").distinct)


def _asking(plan: Plan, lacks: Shared) -> Iterator[tuple[int, StudyTable, list[Lack]]]:
    """The studies that ask for too much and what that is, with the number under which they are recorded."""
    lacking = _lacking(lacks)
    spread = np.flatnonzero(placed(plan.studies, SPREAD))
    for number, places in [*enumerate(plan.shards), (DRIVER, spread)]:
        if len(some := places[lacking[places]]):
            yield number, plan.studies.take(some), lacks.take(some).values(0, len(some))


def _spread_trials(owned: OwnedRun) -> list[TrialRecord]:
    return read_trials(owned.directory, written_by_driver(accepted(owned.directory, owned.term)), lambda *_: None)


def without_room(plan: Plan, directory: RunDirectory, patience: float) -> Shared | None:
    """(n,) the `Lack` of each study, None where it has none; None where nobody has any, or the run waits.

    `PlanError` when all customers ask for too much, or the run itself does. A cluster named by RAY_ADDRESS may grow, so
    there that is a warning, and the run waits. So do trials that several processes train, whoever asks for them.
    directory: of the run. patience: for how many seconds it waits.
    """
    grows, lacks = bool(os.environ.get("RAY_ADDRESS")), _lacks(plan, directory)
    waiting = [lack for lack in _each(lacks) if grows and lack.of_gang]
    if grows and not _theirs(_without(lacks, waiting)):
        waiting = [lack for lack in _each(lacks) if not lack.of_folder]
    for lack in waiting:
        said = "%s: %s. Trials wait up to %g s for a machine to join the cluster, then the run goes on without them."
        logger.warning(said, _whose(plan, lacks, lack), lack.why, patience)
    lacks = _without(lacks, waiting)
    found = sorted(_each(lacks), key=lambda lack: not lack.of_run)
    for lack in found:
        whose = _whose(plan, lacks, lack)
        if not _theirs(lacks):
            raise PlanError(f"{whose}: {lack.why}; {lack.way}.")
        logger.warning("%s: %s. No model comes of that; the others go on.", whose, lack.why)
    return lacks if found else None


def _lacks(plan: Plan, directory: RunDirectory) -> Shared:
    """(n,) the `Lack` of each study; None where machines have what a trial takes.

    Ray would wait for one without an end or a word.
    """
    machines, definition = alive_machines(), plan.spec.definition
    where = f"the run directory, {directory.shown}, which must be in a folder that all nodes share"
    read_there = f"read their rows from {where}"

    def lack(resources: Resources, space: SearchSpace, placement: str, own_space: bool) -> Lack | None:
        readers = [name for name in gangs_in(space) if families()[name].gangs_read_files]
        if not directory.local and definition.objective is None and readers:
            key, of_run = gang_key(definition, definition.resources, own_space=own_space)
            return Lack(key, of_run, f"the actors of {readers[0]!r} {read_there}", A_FOLDER, of_folder=True)
        if why := _too_large(resources, machines):
            return Lack("resources", resources == definition.resources, why, LARGER)
        gang = largest_gang([space]) if definition.objective is None else plan.workers
        if gang is None or placement == PACKED or not (why := _apart(resources, gang, machines)):
            return None
        key, of_run = gang_key(definition, resources, own_space=own_space)
        return Lack(key, of_run, why, LARGER if key == "resources" else _fewer(gang, machines), of_gang=True)

    options = customers_of(plan.studies).shared("options")
    own_space = options.map(lambda options: bool(options and options.search_space))
    return combined(lack, *(plan.studies.shared(name) for name in ("resources", "space", "placement")), own_space)


def _each(lacks: Shared) -> list[Lack]:
    return [lack for lack in dict.fromkeys(lacks.pruned().distinct) if lack is not None]


def _without(lacks: Shared, some: Sequence[Lack]) -> Shared:
    return lacks.map(lambda lack: None if lack in some else lack)


def _theirs(lacks: Shared) -> bool:
    """Whether they are those of some customers, and neither the run's nor everybody's."""
    return not any(lack.of_run for lack in _each(lacks)) and not _lacking(lacks).all()


def _lacking(lacks: Shared) -> np.ndarray:
    """(n,) which studies have one."""
    return lacks.test(lambda lack: lack is not None)


def _whose(plan: Plan, lacks: Shared, lack: Lack) -> str:
    if lack.of_run:
        return lack.key
    return f"{lack.key} of {name_list(ids_of(plan.studies.take(lacks.test(lambda each: each == lack))))}"


def _too_large(resources: Resources, machines: Sequence[Bundle]) -> str:
    """Why no machine has what one process takes; empty where one has."""
    need = resources.to_ray()
    if not machines or any(all(_has(machine, name) >= need[name] for name in need) for machine in machines):
        return ""
    most = {name: max(_has(machine, name) for machine in machines) for name in need}
    return f"a trial needs {_said(need)}, which no machine has; the most is {_said(most)}"


def _apart(driver: Resources, gang: Gang | TrainWorkers, machines: Sequence[Bundle]) -> str:
    """Why machines have no room for a trial's processes side by side; empty where they have."""
    if has_room(machines, [driver.to_bundle(), *gang.bundles], PACK if isinstance(gang, Gang) else gang.strategy):
        return ""
    each = _said({name.lower(): amount for name, amount in gang.bundles[0].items()})
    return (
        f"a trial takes {_said(driver.to_ray())} and {len(gang.bundles)} {_who(gang)} of {each}; there is no room for "
        "all of them at once"
    )


def _fewer(gang: Gang | TrainWorkers, machines: Sequence[Bundle]) -> str:
    gpus, there = (sum(each.get("GPU", 0) for each in some) for some in (gang.bundles, machines))
    if gpus > there:
        return "ask for fewer GPUs, or take a larger machine"
    return f"take fewer {_who(gang)}, or more `slots`"


def _who(gang: Gang | TrainWorkers) -> str:
    return "actors" if isinstance(gang, Gang) else "workers"


def helpers_with_room(plan: Plan) -> int:
    """How many helpers each shard gets on the machines that there are: the plan's, or fewer, or 0 for none."""
    if not plan.helpers:
        return 0
    need = max((resources.to_bundle() for resources in plan.resources), key=lambda bundle: bundle["CPU"])
    machines = alive_machines()
    places = sum(int(min(machine.get(name, 0) / n for name, n in need.items() if n)) for machine in machines)
    found = min(plan.helpers, places // len(plan.shards)) if machines else plan.helpers
    return found if found > 1 else 0


def _has(machine: Mapping[str, float], name: str) -> float:
    return machine.get({"cpu": "CPU", "gpu": "GPU"}.get(name, name), 0)


def _said(amounts: Mapping[str, float]) -> str:
    parts = ((amount, *UNITS.get(name, (name, 1))) for name, amount in amounts.items())
    return ", ".join(f"{amount / size:.4g} {unit}" for amount, unit, size in parts)
