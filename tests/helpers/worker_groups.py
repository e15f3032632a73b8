"""What the tests of trials that several processes train look at: where these are, and what is left of them."""

from __future__ import annotations

import time
from typing import Any

SECONDS = 60.0
# Ray Data's own, one of each in a cluster, for all that work with it.
OF_RAY_DATA = {
    "_StatsActor",
    "_StatsSummaryActor",
    "_AutoscalingCoordinatorActor",
    "AutoscalingRequester",
    "ActorLocationTracker",
    "_UsageCollectionActor",
}


def left_over() -> dict[str, list[str]]:
    """Actors that are alive and placement groups that are not removed; waited for, since Ray ends them later."""
    import ray

    end = time.monotonic() + SECONDS
    while True:
        alive = [each["ActorClassName"] for each in _actors()]
        actors = [name for name in alive if name not in OF_RAY_DATA]
        groups = [
            name for name, group in ray.util.placement_group_table().items() if group["state"] not in ("REMOVED",)
        ]
        found = {"actors": actors, "groups": groups}
        if not (actors or groups) or time.monotonic() > end:
            return {kind: names for kind, names in found.items() if names}
        time.sleep(0.2)


def nodes_of(actor: str) -> list[str]:
    """The nodes on which actors of a class are, by id."""
    return [each["Address"]["NodeID"] for each in _actors() if each["ActorClassName"] == actor]


def processes_of(actor: str) -> list[int]:
    """The processes of the actors of a class, on this machine."""
    return [each["Pid"] for each in _actors() if each["ActorClassName"] == actor]


def _actors() -> list[dict[str, Any]]:
    from ray._private.state import state

    return [each for each in state.actor_table(None).values() if each["State"] != "DEAD"]
