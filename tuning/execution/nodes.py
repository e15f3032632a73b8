"""The cluster as one of its workers sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Nodes:
    """What a worker can know of the cluster.

    name: of its own node. slots: how many workers like it share that. fetch: a file from another node, None when that
    cannot be had. lost: whether a node is gone.
    """

    name: str = ""
    slots: int = 1
    fetch: Callable[[str, str], bytes | None] = lambda *_: None
    lost: Callable[[str], bool] = lambda _: False


def ray_nodes() -> Nodes:
    """The cluster as a worker sees it."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def read(path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def fetch(node: str, path: str) -> bytes | None:
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        task = ray.remote(read).options(num_cpus=0, scheduling_strategy=strategy, max_retries=0)
        try:
            content: bytes | None = ray.get(task.remote(path), timeout=30)
        except Exception:  # the node is going away
            return None
        return content

    def lost(node: str) -> bool:
        return node not in {each["NodeID"] for each in ray.nodes() if each["Alive"]}

    name = ray.get_runtime_context().get_node_id()
    cpus = next((each["Resources"].get("CPU", 1) for each in ray.nodes() if each["NodeID"] == name), 1)
    own = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    return Nodes(name, max(1, int(cpus / own)), fetch, lost)
