"""What no machine of the cluster has room for: refused, waited for, or the reason of the customers that ask for it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tuning.definition.options import Resources
from tuning.errors import PlanError, RunError
from tuning.evaluation.winner import StudyOutcome
from tuning.execution.context import WorkerContext
from tuning.execution.packed import recorded
from tuning.execution.room import alive_machines, has_room
from tuning.execution.spread.journal import DRIVER, written_by_driver
from tuning.execution.study_run import Clock, study_record
from tuning.execution.told import PACK
from tuning.models.gang import Gang
from tuning.planning.gangs import gangs_in
from tuning.planning.plan import Plan
from tuning.planning.room import who_asks
from tuning.records.parts import PartWriter, accepted, read_trials
from tuning.records.schema import NO_MODEL, TrialRecord
from tuning.runs.begin import OwnedRun
from tuning.study.study import Studies
from tuning.trainers.trainer import TrainWorkers
from tuning.wording import name_list

logger = logging.getLogger(__name__)

FROM_A_FOLDER = "xgboost_ray"  # whose actors read files, not object storage
UNITS = {"cpu": ("CPU", 1), "gpu": ("GPU", 1), "memory": ("GB memory", 1e9)}


def make_room(owned: OwnedRun, report: Callable[[dict[str, Any]], None]) -> frozenset[Resources]:
    """What nobody is to wait for: customers who ask for more than any machine has get that as their reason.

    `PlanError` when all of them do, or the run itself does; `RunError` when such a customer has trials already, which
    its reason would end. report: told of what is recorded here.
    """
    check_gang(owned)
    if not (short := without_room(owned.plan)):
        return frozenset()
    context, writers = WorkerContext.open(owned.directory, owned.run, owned.plan.spec), []
    for number, studies in _asking(owned.plan, short):
        known, finished = recorded(owned.directory, owned.term, number)
        begun = {*known, *(record.study for record in _spread_trials(owned) if number == DRIVER)}
        left = [study for study in studies if study.id not in finished]
        if (study := next((study for study in left if study.id in begun), None)) is not None:
            why = short[study.resources]
            raise RunError(
                f"customer {study.customer.id!r} has trials already, and now {why}. Resume where there is a larger one."
            )
        budgets = {study.id: study.budget for study in left}
        writer = PartWriter(owned.directory, owned.term, number, report, budgets=budgets)
        for study in left:
            why = f"resources: {short[study.resources]}; request less, or search it where there is a larger one"
            outcome = StudyOutcome(None, None, why)
            writer.add([study_record(context, study, [], NO_MODEL, outcome, Clock())])
        writers.append(writer)
    for writer in writers:
        writer.flush()
    return frozenset(short)


def _asking(plan: Plan, short: Mapping[Resources, str]) -> Iterator[tuple[int, Studies]]:
    """The studies that ask for these resources, with the number under which they are recorded."""
    for shard, needs in enumerate(plan.resources):
        if needs in short:
            yield shard, plan.studies.take(plan.shards[shard])
    spread = plan.spread.take(plan.spread.shared("resources").test(lambda needs: needs in short))
    if spread:
        yield DRIVER, spread


def _spread_trials(owned: OwnedRun) -> list[TrialRecord]:
    return read_trials(owned.directory, written_by_driver(accepted(owned.directory, owned.term)), lambda *_: None)


def check_gang(owned: OwnedRun) -> None:
    """`PlanError` where a trial's actors have no room side by side, or no folder from which all can read their rows.

    In a cluster that may grow, no room is a warning.
    """
    names = {name for study in owned.plan.spread.first_of_each("space") for name in gangs_in(study.space)}
    if isinstance(owned.plan.gang, Gang) and not owned.directory.local and FROM_A_FOLDER in names:
        raise PlanError(
            f"{owned.directory.shown}: the actors of {FROM_A_FOLDER!r} read their rows from the run directory, which "
            "must be in a folder that all nodes share; give one, or take `xgboost` with `actors`."
        )
    asking = owned.plan.spread.first_of_each("resources", "space")
    for study, (driver, gang) in zip(asking, owned.plan.takes, strict=True):
        if gang is not None:
            own = study.customer.options and study.customer.options.search_space
            key = f"search_space of customer {study.customer.id!r}" if own else "models"
            _check_room(key, driver, gang, owned.timing.room_s)


def _check_room(key: str, driver: Resources, gang: Gang | TrainWorkers, patience: float) -> None:
    key, who = (key, "actors") if isinstance(gang, Gang) else ("objective", "workers")
    strategy = PACK if isinstance(gang, Gang) else gang.strategy
    if has_room(alive_machines(), [driver.to_bundle(), *gang.bundles], strategy):
        return
    why = (
        f"a trial takes {_said(driver.to_ray())} and {len(gang.bundles)} {who} of "
        f"{_said({name.lower(): amount for name, amount in gang.bundles[0].items()})}; there is no room for "
        "all of them at once"
    )
    if not os.environ.get("RAY_ADDRESS"):
        gpus, there = (sum(each.get("GPU", 0) for each in some) for some in (gang.bundles, alive_machines()))
        way = "ask for fewer GPUs, or take a larger machine" if gpus > there else f"take fewer {who}, or more `slots`"
        raise PlanError(f"{key}: {why}; {way}.")
    logger.warning("%s: %s. Trials wait up to %g s for a machine to join the cluster, then fail.", key, why, patience)


def without_room(plan: Plan) -> dict[Resources, str]:
    """What only some customers ask for and no machine has, and why.

    `PlanError` when all ask for more, or the run itself does. A cluster named by RAY_ADDRESS may grow, so there that is
    a warning, and the run waits.
    """
    own = plan.spec.definition.resources
    asked = dict.fromkeys(study.resources for study in plan.studies.first_of_each("resources"))
    short = lacking(asked)
    theirs = own not in short and len(short) < len(asked)
    for resources, why in short.items():
        names = name_list(who_asks(plan.studies, resources))
        whose = "resources" if resources == own else f"resources of {names}"
        if theirs:
            logger.warning("%s: %s. No model comes of that; the others go on.", whose, why)
        elif not os.environ.get("RAY_ADDRESS"):
            raise PlanError(f"{whose}: {why}; request less.")
        else:
            logger.warning("%s: %s. The run waits for a machine to join the cluster.", whose, why)
    return short if theirs else {}


def lacking(needs: Iterable[Resources]) -> dict[Resources, str]:
    """Those that no machine of the cluster has, and why: Ray would wait for one without an end or a word."""
    machines = alive_machines()
    found: dict[Resources, str] = {}
    for resources in needs:
        need = resources.to_ray()
        if machines and not any(all(_has(machine, name) >= need[name] for name in need) for machine in machines):
            most = {name: max(_has(machine, name) for machine in machines) for name in need}
            found[resources] = f"a trial needs {_said(need)}, which no machine has; the most is {_said(most)}"
    return found


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
