"""The machines of the cluster: what a worker can know of them, and what Ray says of those that are gone.

Tune waits without an end or a word when all machines are gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.basics.wording import amount

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
PATIENCE_S = 15.0  # a cluster that restarts, or one whose last machine is being replaced


class MachinesLostError(Exception):
    """No machine of the cluster is alive."""


@dataclass
class NodeWatch:
    """Looks now and then; `check` is cheap enough to be called at every step of Tune's loop.

    lost: names of machines that are gone; it is told of each.
    """

    lost: list[str] = field(default_factory=list)
    every: float = LOOK_EVERY_S
    patience: float = PATIENCE_S
    _next: float = field(default_factory=time.monotonic)
    _gone_since: float | None = None
    _alive: dict[str, str] = field(default_factory=dict)  # names by id

    def check(self) -> None:
        """Raise `MachinesLostError` when no machine has been alive for a while."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self.every
        if alive := alive_nodes():
            self._gone_since = None
            for gone in self._alive.keys() - alive.keys():
                self.lost.append(self._alive[gone])
                logger.warning("machine %s of the Ray cluster is gone; what it was at goes on elsewhere", self.lost[-1])
            self._alive = alive
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since >= self.patience:
            raise MachinesLostError(
                f"no machine of the Ray cluster has been alive for {amount(self.patience, 'second')}"
            )


def worker_died(text: str) -> bool:
    """Return whether Tune's words on why a trial ended are of a process that died.

    Those of an exception in it (its code could not be loaded, say) come with the lines of a stack.
    """
    return '  File "' not in text


def error_text(trial: Trial) -> str:
    """Return what Tune has written down of a trial's last error; empty when that is nothing."""
    try:
        return Path(trial.error_file).read_text(encoding="utf-8", errors="replace")
    except (OSError, TypeError):
        return ""


def alive_nodes() -> dict[str, str]:
    """Return the machines that Ray calls alive, names by id; none where it does not answer."""
    import ray

    try:
        return {node["NodeID"]: node["NodeName"] for node in ray.nodes() if node["Alive"]}
    except Exception:  # its head does not answer
        return {}


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
    """Return the cluster as a worker sees it."""
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
