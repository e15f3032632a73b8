"""What the tests of trials that several processes train look at: what is left of these at the end."""

from __future__ import annotations

import time

SECONDS = 60.0


def left_over() -> dict[str, list[str]]:
    """Actors that are alive and placement groups that are not removed; waited for, since Ray ends them later."""
    import ray
    from ray._private.state import state

    end = time.monotonic() + SECONDS
    while True:
        actors = [each["ActorClassName"] for each in state.actor_table(None).values() if each["State"] != "DEAD"]
        groups = [
            name for name, group in ray.util.placement_group_table().items() if group["state"] not in ("REMOVED",)
        ]
        found = {"actors": actors, "groups": groups}
        if not (actors or groups) or time.monotonic() > end:
            return {kind: names for kind, names in found.items() if names}
        time.sleep(0.2)
