"""Processes that work together in a placement group: they are started, lost, started again and ended.

What a loss means is for their user to say: whether a trial is to blame, whether the others go on, and from where.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

K = TypeVar("K", bound=Hashable)
REACH_S = 10.0  # for which a process that has stopped answering is asked whether it lives


@dataclass(frozen=True, slots=True)
class CallAnswered(Generic[K]):
    """A process has done what it was asked."""

    key: K
    answer: object


@dataclass(frozen=True, slots=True)
class CallRaised(Generic[K]):
    """The code of a process has raised; the process lives."""

    key: K
    error: BaseException


@dataclass(frozen=True, slots=True)
class ProcessLost(Generic[K]):
    """A process has died or cannot be reached, or what it was to work with is lost. error: Ray's own."""

    key: K
    error: BaseException


CallEnd: TypeAlias = CallAnswered[K] | CallRaised[K] | ProcessLost[K]


class Calls(Generic[K]):
    """What processes have been asked and have not answered; each has a key."""

    def __init__(self) -> None:
        self._keys: dict[ObjectRef[object], K] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: K, reference: ObjectRef[object]) -> None:
        """A process has been asked something. reference: of its answer."""
        self._keys[reference] = key

    def drop(self, key: K) -> list[ObjectRef[object]]:
        """Nobody waits for a process's answers any more; they come back as references."""
        found = [reference for reference, each in self._keys.items() if each == key]
        for reference in found:
            del self._keys[reference]
        return found

    def heard(self, keys: Collection[K]) -> bool:
        """Whether `wait` has something of these processes at once."""
        import ray

        asked = self._of(keys)
        return bool(asked and ray.wait(asked, timeout=0)[0])

    def wait(self, seconds: float | None = None, keys: Collection[K] | None = None) -> list[CallEnd[K]]:
        """How calls have ended, by now or by the time that one has.

        seconds: to wait for one at most; None without an end. keys: of the processes; None for all.
        """
        import ray

        if not (asked := self._of(keys)):
            return []
        ray.wait(asked, timeout=seconds)
        done, _ = ray.wait(asked, num_returns=len(asked), timeout=0)
        return [self._end(reference) for reference in done]

    def _of(self, keys: Collection[K] | None) -> list[ObjectRef[object]]:
        return [reference for reference, key in self._keys.items() if keys is None or key in keys]

    def _end(self, reference: ObjectRef[object]) -> CallEnd[K]:
        import ray
        from ray.exceptions import RayError, RayTaskError

        key = self._keys.pop(reference)
        try:
            return CallAnswered(key, ray.get(reference))
        except RayTaskError as error:
            return CallRaised(key, error.cause)
        except RayError as error:
            return ProcessLost(key, error)


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
    _calls: Calls[int] = field(default_factory=Calls)

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
        takes = {name: amount for name, amount in self.place.bundle_specs[bundle].items() if amount} if bundle else {}
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
        self._calls.add(number, getattr(actor, self.ready).remote())
        self._since[number] = time.monotonic()
        self.starts += 1

    def ask(self, number: int, method: str, *arguments: object, returns: int = 1) -> list[ObjectRef[object]]:
        """Ask an actor something; `wait` has its answer.

        returns: how many values the method gives. The first is the answer; of the others the references come back.
        """
        found = getattr(self._actors[number], method).options(num_returns=returns).remote(*arguments)
        answer, *others = found if returns > 1 else [found]
        self._calls.add(number, answer)
        return others

    def wait(self, seconds: float | None = None, numbers: Collection[int] | None = None) -> list[CallEnd[int]]:
        """What has come of starts and questions; as of `Calls.wait`."""
        found = self._calls.wait(seconds, numbers)
        for end in found:
            self._since.pop(end.key, None)
            if isinstance(end, ProcessLost):
                self.there.discard(end.key)
            else:
                self.there.add(end.key)
        return found

    def heard(self, numbers: Collection[int]) -> bool:
        """Whether `wait` has something of these actors at once."""
        return self._calls.heard(numbers)

    def late(self, patience: float) -> bool:
        """Whether an actor has been starting for longer than so many seconds: most likely there is no room for it."""
        return any(time.monotonic() - since > patience for since in self._since.values())

    def dead(self, number: int) -> bool:
        """Whether an actor has died. Else it cannot be reached for a while."""
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
        return self._calls.drop(number)

    def close(self, seconds: float = 0.0) -> None:
        """End all actors. seconds: for which it is waited until those that were starting are gone."""
        import ray

        starting = {*self.coming}
        owed = [reference for number in list(self._actors) for reference in self.end(number) if number in starting]
        if owed and seconds:
            ray.wait(owed, num_returns=len(owed), timeout=seconds)
