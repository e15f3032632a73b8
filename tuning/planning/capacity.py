"""The capacity for work: what this machine and the cluster's machines have, how long a run waits, and what it may take.

Ray waits for a machine without an end or a word. It may come: a cluster grows, and a node that was lost is replaced.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.errors import PlanError
from tuning.notes import EndCode, Note

if TYPE_CHECKING:  # a server reads the names of the variables alone
    from tuning.study.study import StudyTable

logger = logging.getLogger(__name__)

#: Environment variables by which somebody else, such as a service, limits a run; absent or empty for no limit.
MOST_TRIALS = "TUNING_MOST_TRIALS"
MACHINE_SLOTS = "TUNING_MACHINE_SLOTS"  # those of all runs that share this machine's memory

ALONE = "a place alone on its machine"
LOOK_S = 1.0  # between two looks at the cluster's machines

Bundle = Mapping[str, float]
Request = tuple[Sequence[Bundle], str]  # bundles of a placement group, and its strategy


@dataclass
class Capacity:
    """What the cluster's machines have room for when nothing else runs.

    Attributes:
        machines: gives what each machine has in all, as it is now.
        patience: seconds for which a request waits for a machine, see `timed_out`.
    """

    machines: Callable[[], Sequence[Bundle]]
    patience: float = math.inf
    _since: dict[str, float] = field(default_factory=dict)  # by request: since when there is no room for it

    @property
    def cpus(self) -> float:
        """The CPUs of all machines."""
        return sum(machine.get("CPU", 0.0) for machine in self.machines())

    def fits(self, request: Request) -> bool:
        """Return whether all of these bundles fit at once."""
        found = has_room(self.machines(), *request)
        if found:
            self._since.pop(repr(request), None)
        return found

    def timed_out(self, request: Request, name: str) -> bool:
        """Return whether a request that has no room waits no longer.

        Time counts from when there was no room for the same bundles, and not for each of many trials anew. name: such
        as "a trial of 'giant'", for a warning at the beginning.
        """
        if self.fits(request):
            return False
        if not self.machines():  # all are lost at once, which ends the Tuner and not a customer's study
            self._since.clear()
            return False
        now = time.monotonic()
        if (since := self._since.setdefault(repr(request), now)) == now:
            logger.warning(
                "%s takes %s, for which the machines that are there have no room: it waits up to %g s for another one.",
                name, bundles_text(request[0]), self.patience,
            )  # fmt: skip
        return now - since >= self.patience

    def no_place(self, request: Request, subject: str, more: str = "") -> Note:
        """Return the reason of a request that has timed out.

        subject: what asks. more: what a resume then has to ask for.
        """
        return EndCode.NO_PLACE(subject, takes=bundles_text(request[0]), seconds=self.patience, more=more)


def has_room(machines: Sequence[Bundle], bundles: Sequence[Bundle], strategy: str = "PACK") -> bool:
    """Return whether machines without other work have room for all bundles of a placement group at once."""
    if strategy == "STRICT_PACK":
        return any(has_room([machine], bundles) for machine in machines)
    needs: list[Bundle] = [{name: amount for name, amount in bundle.items() if amount} for bundle in bundles]
    needs = [need for need in needs if need]
    if strategy == "STRICT_SPREAD":
        needs, machines = [{**need, ALONE: 1} for need in needs], [{**machine, ALONE: 1} for machine in machines]
    # Equal ones side by side, the most frequent last: those need only be counted.
    return _fit_together(sorted(needs, key=lambda need: (needs.count(need), repr(need))), machines)


def _fit_together(needs: Sequence[Bundle], machines: Sequence[Bundle]) -> bool:
    if not needs:
        return True
    first, *others = needs
    if first == needs[-1]:
        return sum(_times(first, machine) for machine in machines) >= len(needs)
    return any(
        _fit_together(others, [*machines[:place], _less(machine, first), *machines[place + 1 :]])
        for place, machine in enumerate(machines)
        if _times(first, machine)
    )


def _times(need: Bundle, machine: Bundle) -> int:
    """Return how often a machine has what is needed."""
    return int(min(machine.get(name, 0.0) / amount for name, amount in need.items()) + 1e-9)


def _less(machine: Bundle, need: Bundle) -> Bundle:
    return {name: amount - need.get(name, 0.0) for name, amount in machine.items()}


def bundles_text(bundles: Sequence[Bundle]) -> str:
    """Return the bundles as a text, such as "1 CPU and 2 times 8 CPU + 1 GPU"."""
    texts = [" + ".join(f"{amount:g} {name}" for name, amount in bundle.items() if amount) for bundle in bundles]
    times = {text: texts.count(text) for text in texts if text}
    return " and ".join(f"{amount(count, 'time')} {text}" if count > 1 else text for text, count in times.items())


def machines_now() -> Callable[[], Sequence[Bundle]]:
    """Return the machines of the cluster, which may come and go: Ray is asked for them once in a while."""
    known: Sequence[Bundle] = ()
    until = -math.inf

    def now() -> Sequence[Bundle]:
        nonlocal known, until
        if time.monotonic() > until:
            with suppress(Exception):  # Ray's head does not answer: `NodeWatch` says how long it may
                known = alive_machines()
            until = time.monotonic() + LOOK_S
        return known

    return now


def alive_machines() -> list[dict[str, float]]:
    """Return what each machine of the cluster has, used or not; none without Ray."""
    import ray

    if not ray.is_initialized():
        return []
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def own_ray() -> bool:
    """Return whether a run would start a Ray of its own on this machine."""
    ray = sys.modules.get("ray")
    return not os.environ.get("RAY_ADDRESS") and not (ray is not None and ray.is_initialized())


def nvidia_gpus() -> int:
    """Return the number of NVIDIA GPUs of this machine."""
    return len(glob("/dev/nvidia[0-9]*"))


def other_gpus() -> bool:
    """Return whether this machine may have GPUs of AMD or Intel, which Ray alone counts."""
    return bool(glob("/dev/kfd") + glob("/dev/dri/renderD*"))


def memory() -> int:
    """Return the memory of this machine, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def free_memory() -> int:
    """Return bytes that can still be had on this machine, or in this container."""
    free = 2**62
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            free = min(free, int(most) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return free


def machine_slots(own: int) -> int:
    """Return how many slots share this machine's memory. own: those of this run on it."""
    return max(1, own, int(os.environ.get(MACHINE_SLOTS) or 0))


def check_allowance(studies: StudyTable) -> None:
    """Raise `PlanError` where the studies have more trials together than this process's environment allows."""
    allowed = os.environ.get(MOST_TRIALS)
    trials = int(studies.numbers("n_trials").sum()) if allowed else 0
    if allowed and trials > int(allowed):
        raise PlanError(
            f"the run has {amount(trials, 'trial')} in {amount(len(studies), 'study')}, and {int(allowed):,} are "
            f"allowed in one run ({MOST_TRIALS}). Lower `trials`, or take fewer customers."
        )
