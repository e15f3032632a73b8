"""What studies ask for and no machine has: said in a plan, and refused or waited for once the machines are known."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from search_spaces import SearchSpace
from tuning.basics.columnar import DictionaryColumn, combined
from tuning.basics.wording import name_list
from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.errors import PlanError
from tuning.models.gang import Gang
from tuning.models.registry import families
from tuning.models.trainers.trainer import TrainWorkers
from tuning.notes import Note, PlanCode
from tuning.planning.gangs import gang_key, gangs_in, largest_gang
from tuning.planning.room import Bundle, has_room, memory, nvidia_gpus, other_gpus, own_ray
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import PACKED, StudyTable, customers_of

logger = logging.getLogger(__name__)

LARGER = "request less, or run it where there is a larger machine"
A_FOLDER = "give one, or take `xgboost` with `actors`"
MOST_NAMED = 10  # customers in a note
UNITS = {"cpu": ("CPU", 1), "gpu": ("GPU", 1), "memory": ("GB memory", 1e9)}


def too_large(definition: Definition, studies: StudyTable, slots: int) -> Iterator[Note]:
    """Return notes on resources that a Ray of our own on this machine would not have; of a cluster nothing is known.

    They are no refusals: the plan may be meant for a larger machine.
    """
    for resources in dict.fromkeys(study.resources for study in studies.first_of_each("resources")):
        of_run = resources == definition.resources
        for excess in _excess(resources, slots) if own_ray() else ():
            names = [] if of_run else _ids(studies.take(studies.shared("resources").test(resources.__eq__)))
            yield replace(excess, values={**excess.values, "customers": names[:MOST_NAMED]})


def check_own_machine(definition: Definition, studies: StudyTable, slots: int) -> None:
    """`PlanError` where all trials ask for what a Ray of our own will not have, before it starts.

    Of who is alone in that, Ray's start is waited for: the others go on.
    """
    if not own_ray() or not len(studies):
        return
    asked = dict.fromkeys(study.resources for study in studies.first_of_each("resources"))
    excesses = {resources: next(_excess(resources, slots), None) for resources in asked}
    if why := excesses.get(definition.resources) or (all(excesses.values()) and next(iter(excesses.values()))):
        raise PlanError(str(why))


@dataclass(frozen=True)
class Shortage:
    """What some studies ask for and no machine has.

    Attributes:
        key: where it is asked for.
        of_run: whether the definition asks for it; else single customers do.
        why: the beginning of a sentence.
        remedy: the sentence's end, the way out.
        of_gang: whether it is room for several processes side by side.
        of_folder: whether it is a run directory that the actors can read, which no machine that joins a cluster has.
    """

    key: str
    of_run: bool
    why: str
    remedy: str
    of_gang: bool = False
    of_folder: bool = False


def find_shortages(
    definition: Definition,
    studies: StudyTable,
    workers: TrainWorkers | None,
    directory: RunDirectory,
    machines: Sequence[Bundle],
    patience: float,
) -> DictionaryColumn | None:
    """(n,) the `Shortage` of each study, None where it has none; None where no study has one, or the run waits.

    A cluster named by RAY_ADDRESS may grow, so there a shortage is a warning, and the run waits. Trials that several
    processes train wait there in any case.

    Args:
        workers: of the trainers that an objective makes.
        directory: of the run.
        machines: what each machine has; empty where that is not known.
        patience: seconds for which the run waits.

    Raises:
        PlanError: the definition asks for what no machine has, or all customers do.
    """
    grows, found = bool(os.environ.get("RAY_ADDRESS")), _shortages(definition, studies, workers, directory, machines)
    waiting = [shortage for shortage in _distinct(found) if grows and shortage.of_gang]
    if grows and not _of_some_customers(_except(found, waiting)):
        waiting = [shortage for shortage in _distinct(found) if not shortage.of_folder]
    for shortage in waiting:
        text = "%s: %s. Trials wait up to %g s for a machine to join the cluster, then the run goes on without them."
        logger.warning(text, _key_and_customers(studies, found, shortage), shortage.why, patience)
    found = _except(found, waiting)
    refused = sorted(_distinct(found), key=lambda shortage: not shortage.of_run)
    for shortage in refused:
        where = _key_and_customers(studies, found, shortage)
        if not _of_some_customers(found):
            raise PlanError(f"{where}: {shortage.why}; {shortage.remedy}.")
        logger.warning("%s: %s. No model comes of that; the others go on.", where, shortage.why)
    return found if refused else None


def with_shortage(shortages: DictionaryColumn) -> np.ndarray:
    """(n,) which studies have a shortage."""
    return shortages.test(lambda shortage: shortage is not None)


def _shortages(
    definition: Definition,
    studies: StudyTable,
    workers: TrainWorkers | None,
    directory: RunDirectory,
    machines: Sequence[Bundle],
) -> DictionaryColumn:
    """(n,) the `Shortage` of each study; Ray would wait for a machine without an end or a word."""
    where = f"the run directory, {directory.shown}, which must be in a folder that all nodes share"

    def shortage(resources: Resources, space: SearchSpace, placement: str, own_space: bool) -> Shortage | None:
        readers = [name for name in gangs_in(space) if families()[name].gangs_read_files]
        if not directory.local and definition.objective is None and readers:
            unreadable = f"the actors of {readers[0]!r} read their rows from {where}"
            key, of_run = gang_key(definition, definition.resources, own_space=own_space)
            return Shortage(key, of_run, unreadable, A_FOLDER, of_folder=True)
        if why := _too_large(resources, machines):
            return Shortage("resources", resources == definition.resources, why, LARGER)
        gang = largest_gang([space]) if definition.objective is None else workers
        if gang is None or placement == PACKED or not (why := _no_room_together(resources, gang, machines)):
            return None
        key, of_run = gang_key(definition, resources, own_space=own_space)
        remedy = LARGER if key == "resources" else _gang_remedy(gang, machines)
        return Shortage(key, of_run, why, remedy, of_gang=True)

    options = customers_of(studies).shared("options")
    own_space = options.map(lambda options: bool(options and options.search_space))
    return combined(shortage, *(studies.shared(name) for name in ("resources", "space", "placement")), own_space)


def _distinct(shortages: DictionaryColumn) -> list[Shortage]:
    return [shortage for shortage in dict.fromkeys(shortages.pruned().distinct) if shortage is not None]


def _except(shortages: DictionaryColumn, some: Sequence[Shortage]) -> DictionaryColumn:
    return shortages.map(lambda shortage: None if shortage in some else shortage)


def _of_some_customers(shortages: DictionaryColumn) -> bool:
    """Whether single customers have these shortages, and not the run or all customers."""
    return not any(each.of_run for each in _distinct(shortages)) and not with_shortage(shortages).all()


def _key_and_customers(studies: StudyTable, shortages: DictionaryColumn, shortage: Shortage) -> str:
    if shortage.of_run:
        return shortage.key
    return f"{shortage.key} of {name_list(_ids(studies.take(shortages.test(lambda each: each == shortage))))}"


def _ids(studies: StudyTable) -> list[str]:
    """The ids of the customers of these studies, each once."""
    found: list[str] = customers_of(studies).texts("id").unique().to_pylist()
    return found


def _excess(resources: Resources, slots: int) -> Iterator[Note]:
    gigabytes = memory() / 1e9
    asked = {"cpus": resources.cpus, "gpus": 0 if other_gpus() else resources.gpus}
    asked |= {f"custom.{name}": amount for name, amount in resources.custom.items()}
    asked["memory_gb"] = resources.memory_gb or 0
    have = {"cpus": slots, "gpus": nvidia_gpus(), "memory_gb": round(gigabytes, 1)}
    for name, amount in asked.items():
        if amount > have.get(name, 0):
            yield PlanCode.RESOURCES_TOO_LARGE(name, asked=amount, have=have.get(name, 0), customers=[])


def _too_large(resources: Resources, machines: Sequence[Bundle]) -> str:
    """Why no machine has what one process takes; empty where one has."""
    need = resources.to_ray()
    if not machines or any(all(_amount(machine, name) >= need[name] for name in need) for machine in machines):
        return ""
    most = {name: max(_amount(machine, name) for machine in machines) for name in need}
    return f"a trial needs {_amounts_text(need)}, which no machine has; the most is {_amounts_text(most)}"


def _no_room_together(driver: Resources, gang: Gang | TrainWorkers, machines: Sequence[Bundle]) -> str:
    """Why machines have no room for a trial's processes side by side; empty where they have."""
    if has_room(machines, [driver.to_bundle(), *gang.bundles], "PACK" if isinstance(gang, Gang) else gang.strategy):
        return ""
    each = _amounts_text({name.lower(): amount for name, amount in gang.bundles[0].items()})
    return (
        f"a trial takes {_amounts_text(driver.to_ray())} and {len(gang.bundles)} {_process_name(gang)} of {each}; "
        "there is no room for all of them at once"
    )


def _gang_remedy(gang: Gang | TrainWorkers, machines: Sequence[Bundle]) -> str:
    gpus, there = (sum(each.get("GPU", 0) for each in some) for some in (gang.bundles, machines))
    if gpus > there:
        return "ask for fewer GPUs, or take a larger machine"
    return f"take fewer {_process_name(gang)}, or more `slots`"


def _process_name(gang: Gang | TrainWorkers) -> str:
    return "actors" if isinstance(gang, Gang) else "workers"


def _amount(machine: Mapping[str, float], name: str) -> float:
    return machine.get({"cpu": "CPU", "gpu": "GPU"}.get(name, name), 0)


def _amounts_text(amounts: Mapping[str, float]) -> str:
    parts = ((amount, *UNITS.get(name, (name, 1))) for name, amount in amounts.items())
    return ", ".join(f"{amount / size:.4g} {unit}" for amount, unit, size in parts)
