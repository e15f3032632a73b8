"""What no machine of the cluster has room for: refused, waited for, or the reason of the customers that ask for it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tuning.definition.options import Resources
from tuning.errors import PlanError, RunError
from tuning.evaluation.winner import StudyOutcome
from tuning.execution.context import WorkerContext
from tuning.execution.packed import recorded
from tuning.execution.study_run import Clock, study_record
from tuning.planning.plan import SPREAD, Plan
from tuning.planning.room import who_asks
from tuning.records.parts import PartWriter
from tuning.records.schema import NO_MODEL
from tuning.runs.begin import OwnedRun
from tuning.wording import name_list

logger = logging.getLogger(__name__)

UNITS = {"cpu": ("CPU", 1), "gpu": ("GPU", 1), "memory": ("GB memory", 1e9)}


def make_room(owned: OwnedRun, report: Callable[[dict[str, Any]], None]) -> frozenset[Resources]:
    """What nobody is to wait for: customers who ask for more than any machine has get that as their reason.

    `PlanError` when all of them do, or the run itself does; `RunError` when such a customer has trials already, which
    its reason would end. report: told of what is recorded here.
    """
    check_gang(owned)
    short = without_room(owned.plan)
    context = WorkerContext.open(owned.directory, owned.run, owned.plan.spec) if short else None
    writers = []
    for shard, positions in enumerate(owned.plan.shards):
        if context is None or (why := short.get(owned.plan.studies[positions[0]].resources)) is None:
            continue
        studies = owned.plan.studies.take(positions)
        known, finished = recorded(owned.directory, owned.term, shard)
        left = [study for study in studies if study.id not in finished]
        if begun := [study.customer.id for study in left if study.id in known]:
            raise RunError(
                f"customer {begun[0]!r} has trials already, and now {why}. Resume where there is a larger one."
            )
        outcome = StudyOutcome(None, None, f"resources: {why}; request less, or search it where there is a larger one")
        budgets = {study.id: study.n_trials for study in left}
        writer = PartWriter(owned.directory, owned.term, shard, report, budgets=budgets)
        writer.add([study_record(context, study, [], NO_MODEL, outcome, Clock()) for study in left])
        writers.append(writer)
    for writer in writers:
        writer.flush()
    return frozenset(short)


def check_gang(owned: OwnedRun) -> None:
    """`PlanError` where a trial's actors have no room side by side, or no folder from which all can read their rows.

    In a cluster that may grow, no room is a warning.
    """
    gang, driver = owned.plan.gang, owned.plan.spec.definition.resources
    if gang is None or owned.plan.placement != SPREAD:
        return
    if not owned.directory.local:
        raise PlanError(
            f"{owned.directory.shown}: several processes train each trial, and read their rows from the run directory; "
            "give one in a folder that all nodes share."
        )
    machines = [dict(machine) for machine in _machines()]
    for bundle in sorted([driver.to_bundle(), *gang.bundles], key=lambda bundle: -bundle["CPU"]):
        room = next((each for each in machines if all(each.get(name, 0) >= n for name, n in bundle.items())), None)
        if room is None:
            why = (
                f"a trial takes {_said(driver.to_ray())} and {gang.actors} actors of "
                f"{_said({name.lower(): amount for name, amount in gang.bundles[0].items()})}; there is no room for "
                "all of them at once"
            )
            if os.environ.get("RAY_ADDRESS"):
                logger.warning("models: %s. The run waits for a machine to join the cluster.", why)
                return
            raise PlanError(f"models: {why}; take fewer actors, or more `slots`.")
        for name, amount in bundle.items():
            room[name] -= amount


def without_room(plan: Plan) -> dict[Resources, str]:
    """What only some customers ask for and no machine has, and why.

    `PlanError` when all ask for more, or the run itself does. A cluster named by RAY_ADDRESS may grow, so there that is
    a warning, and the run waits.
    """
    own = plan.spec.definition.resources
    asked = dict.fromkeys([own] if plan.placement == SPREAD else plan.resources)
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
    machines = _machines()
    found: dict[Resources, str] = {}
    for resources in needs:
        need = resources.to_ray()
        if machines and not any(all(_has(machine, name) >= need[name] for name in need) for machine in machines):
            most = {name: max(_has(machine, name) for machine in machines) for name in need}
            found[resources] = f"a trial needs {_said(need)}, which no machine has; the most is {_said(most)}"
    return found


def _machines() -> list[dict[str, float]]:
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _has(machine: Mapping[str, float], name: str) -> float:
    return machine.get({"cpu": "CPU", "gpu": "GPU"}.get(name, name), 0)


def _said(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount / UNITS[name][1]:.4g} {UNITS[name][0]}" for name, amount in amounts.items())
