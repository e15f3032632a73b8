"""Processes that work together in a placement group: they are started, lost, started again and ended.

What a loss means is for their user to say: whether a trial is to blame, whether the others go on, and from where.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tuning.basics.wording import amount
from tuning.errors import RunError
from tuning.models.worker_group import ActorGroup

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

REACH_S = 10.0  # for which a process that has stopped answering is asked whether it lives


@dataclass(frozen=True)
class RayPlace:
    """Where a worker group works.

    Attributes:
        group: the placement group: this process is in its first bundle, the actors are in those behind.
        uri: of the run directory, which all nodes reach.
        folder: for shards, in it.
        patience_s: for which an actor's start is waited for.
    """

    group: PlacementGroup
    uri: str
    folder: str
    patience_s: float

    def no_start(self, missing: int, worker_group: ActorGroup) -> RunError:
        """Return why a training ends if its actors do not start."""
        return RunError(
            f"{missing} of {amount(worker_group.actors, 'actor')} did not start within {self.patience_s:g} s: there is "
            "no room for them, or their machine is too busy."
        )


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A process has done what it was asked."""

    key: int
    answer: object


@dataclass(frozen=True, slots=True)
class CallRaised:
    """The code of a process has raised; the process lives."""

    key: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class ProcessLost:
    """A process has died or cannot be reached, or what it was to work with is lost. error: Ray's own."""

    key: int
    error: BaseException


CallEnd: TypeAlias = CallAnswered | CallRaised | ProcessLost


@dataclass(eq=False)
class ProcessGroup:
    """Actors in the bundles of a placement group, by number.

    Bundle 0 belongs to the process that makes the group: an actor in it takes nothing of its own.

    Attributes:
        place: the placement group.
        actor: the class of the actors.
        ready: the method that an actor answers once it can be asked something.
        first: the bundle of actor 0; those of the others follow.
        there: the actors that can be asked something.
        starts: how many have been started, again ones included.
    """

    place: PlacementGroup
    actor: type
    ready: str
    first: int = 0
    there: set[int] = field(default_factory=set)
    starts: int = 0
    _actors: dict[int, ActorHandle] = field(default_factory=dict)
    _since: dict[int, float] = field(default_factory=dict)  # of those that are starting
    _asked: dict[ObjectRef[object], int] = field(default_factory=dict)  # the answers that are owed, and by whom

    @property
    def size(self) -> int:
        """How many there are room for."""
        return int(self.place.bundle_count) - self.first

    @property
    def coming(self) -> Collection[int]:
        """The actors that are starting."""
        return self._since.keys()

    def start(self, number: int, *arguments: object) -> None:
        """Start an actor, in place of the one that had its number. arguments: of its class."""
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self.end(number)
        bundle = self.first + number
        takes = {name: much for name, much in self.place.bundle_specs[bundle].items() if much} if bundle else {}
        options = {
            "num_cpus": takes.pop("CPU", 0),
            "num_gpus": takes.pop("GPU", 0),
            **({"memory": takes.pop("memory")} if "memory" in takes else {}),
            "resources": takes,
            "max_restarts": 0,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                self.place, bundle, placement_group_capture_child_tasks=False
            ),
        }
        actor = self._actors[number] = ray.remote(self.actor).options(**options).remote(*arguments)
        self._asked[getattr(actor, self.ready).remote()] = number
        self._since[number] = time.monotonic()
        self.starts += 1

    def ask(self, number: int, method: str, *arguments: object, returns: int = 1) -> list[ObjectRef[object]]:
        """Ask an actor something; `wait` has its answer.

        returns: how many values the method gives. The first is the answer; of the others the references come back.
        """
        found = getattr(self._actors[number], method).options(num_returns=returns).remote(*arguments)
        answer, *others = found if returns > 1 else [found]
        self._asked[answer] = number
        return others

    def wait(self, seconds: float | None = None, numbers: Collection[int] | None = None) -> list[CallEnd]:
        """Return how starts and questions have ended, by now or by the time that one has.

        seconds: to wait for one at most; None without an end. numbers: of the actors; None for all.
        """
        import ray

        if not (owed := self._owed(numbers)):
            return []
        ray.wait(owed, timeout=seconds)
        done, _ = ray.wait(owed, num_returns=len(owed), timeout=0)
        return [self._ended(reference) for reference in done]

    def heard(self, numbers: Collection[int]) -> bool:
        """Return whether `wait` has something of these actors at once."""
        import ray

        owed = self._owed(numbers)
        return bool(owed and ray.wait(owed, timeout=0)[0])

    def _owed(self, numbers: Collection[int] | None) -> list[ObjectRef[object]]:
        return [reference for reference, number in self._asked.items() if numbers is None or number in numbers]

    def _ended(self, reference: ObjectRef[object]) -> CallEnd:
        import ray
        from ray.exceptions import RayError, RayTaskError

        number = self._asked.pop(reference)
        self._since.pop(number, None)
        self.there.add(number)
        try:
            return CallAnswered(number, ray.get(reference))
        except RayTaskError as error:
            return CallRaised(number, error.cause)
        except RayError as error:
            self.there.discard(number)
            return ProcessLost(number, error)

    def late(self, patience: float) -> bool:
        """Return whether an actor has been starting for longer than so many seconds, most likely for lack of room."""
        return any(time.monotonic() - since > patience for since in self._since.values())

    def dead(self, number: int) -> bool:
        """Return whether an actor has died. Else it cannot be reached for a while."""
        import ray
        from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError

        try:
            ray.get(getattr(self._actors[number], self.ready).remote(), timeout=REACH_S)
        except (ActorUnavailableError, GetTimeoutError):
            return False
        except RayError:
            return True
        return False

    def end(self, number: int) -> list[ObjectRef[object]]:
        """End an actor, whatever it is doing; the answers that it owed come back as references."""
        import ray

        self.there.discard(number)
        self._since.pop(number, None)
        if (actor := self._actors.pop(number, None)) is not None:
            with suppress(Exception):  # it is gone already
                ray.kill(actor)
        owed = self._owed({number})
        for reference in owed:
            del self._asked[reference]
        return owed

    def close(self, seconds: float = 0.0) -> None:
        """End all actors. seconds: for which it is waited until those that were starting are gone."""
        import ray

        starting = {*self.coming}
        owed = [reference for number in list(self._actors) for reference in self.end(number) if number in starting]
        if owed and seconds:
            ray.wait(owed, num_returns=len(owed), timeout=seconds)
