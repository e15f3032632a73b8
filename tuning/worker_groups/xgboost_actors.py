"""XGBoost's own collective on plain Ray actors, one process per actor for all folds of a trial.

The trial's process drives: it starts the actors and XGBoost's tracker, and asks for one step after the other. An actor
reads its shards, and gives back the models after a step. XGBoost recovers nothing within a round, so when an actor is
lost all that are there read their rows again and go on from the models of the last step.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tuning.basics.wording import amount, raised
from tuning.errors import RunError
from tuning.models.boosters import rounds_of
from tuning.models.families import xgboost_ray
from tuning.models.group_training import GroupTraining, TrainingJob
from tuning.models.shards import LABEL, WEIGHT, read_shards
from tuning.models.worker_group import RESTARTS, ActorGroup
from tuning.worker_groups.process_group import (
    CallAnswered,
    CallEnd,
    CallRaised,
    ProcessGroup,
    ProcessLost,
    RayPlace,
)

if TYPE_CHECKING:
    from xgboost import Booster, QuantileDMatrix
    from xgboost.tracker import RabitTracker

LOOK_S = 1.0  # between two looks whether an actor that has not started has been lost
LEAVE_S = 5.0  # for which the others have to notice that one is lost; then they lose the tracker, too
# For which Ray has to notice: it gives up a machine after 30 seconds without a word.
SETTLE_S = 60.0


class GroupActor:
    """One of the processes that train; a Ray actor."""

    def __init__(self, uri: str, threads: int) -> None:
        self.uri, self.threads = uri, threads
        self.models: list[tuple[Booster, QuantileDMatrix, TrainingJob]] = []

    def ready(self) -> None:
        """Answer when the process is there, with XGBoost."""
        import xgboost  # noqa: F401  # what takes longest

    def begin(self, tracker: Mapping[str, str | int], rank: int, works: Sequence[TrainingJob]) -> None:
        """Read the shards of each model that are this actor's, as `works` says, and join the others."""
        from xgboost import collective

        self._leave()
        collective.init(**tracker, dmlc_task_id=f"{rank:06d}")
        with self._leaving():
            self.models += [(*_opened(work, self.uri, self.threads), work) for work in works]

    def advance(self) -> list[bytes]:
        """Train one step of all models; what they are now, from the first actor."""
        from xgboost import collective

        with self._leaving():
            for booster, rows, work in self.models:
                done = booster.num_boosted_rounds()
                for number in range(done, min(done + work.every, work.rounds)):
                    booster.update(rows, number)
        return [bytes(booster.save_raw("ubj")) for booster, _, _ in self.models] if collective.get_rank() == 0 else []

    @contextlib.contextmanager
    def _leaving(self) -> Iterator[None]:
        """Make an error one for all: who waits for this one would else go on waiting."""
        try:
            yield
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        from xgboost import collective

        self.models.clear()
        with contextlib.suppress(Exception):  # of the others some may have died
            collective.finalize()


def _opened(work: TrainingJob, uri: str, threads: int) -> tuple[Booster, QuantileDMatrix]:
    """Return a model and its rows; the candidates for splits are found by all actors together."""
    import xgboost

    table = read_shards(work.shards, uri)
    features = [name for name in table.column_names if name not in (LABEL, WEIGHT)]
    rows = xgboost.QuantileDMatrix(
        np.column_stack([table.column(name).to_numpy() for name in features]),
        label=table.column(LABEL).to_numpy(),
        weight=table.column(WEIGHT).to_numpy() if work.weighted else None,
        max_bin=work.params["max_bin"],
        feature_types=list(work.types),
        enable_categorical=True,
        nthread=threads,
    )
    model = bytearray(work.model) if work.model else None
    return xgboost.Booster({**work.params, "nthread": threads}, [rows], model_file=model), rows


class _LostError(Exception):
    """Actors have died, or do not answer: `numbers`."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers


@dataclass(eq=False)
class Actors:
    """A worker group of such actors, from when it is made; see `tuning.models.group_training.Training`.

    Attributes:
        works: the models, of equally many rounds and steps.
        worker_group, place: which actors, and where: the first of them in the second bundle of the placement group.
        beginnings: when training has begun, again after each lost actor (`time.monotonic`), and after how many rounds.

    Raises:
        RunError: actors are lost more than `RESTARTS` times or do not start, or XGBoost refuses.
    """

    works: Sequence[TrainingJob]
    worker_group: ActorGroup
    place: RayPlace
    beginnings: list[tuple[float, int]] = field(default_factory=list)
    _step: set[int] = field(default_factory=set)  # the actors that train a step now
    _tracker: RabitTracker | None = None
    _models: tuple[bytes | None, ...] = ()  # after the last step
    _losses: int = 0

    def __post_init__(self) -> None:
        self._models = tuple(work.model for work in self.works)
        self._done = rounds_of(self._models[0])
        self._actors = ProcessGroup(self.place.group, GroupActor, "ready", first=1)
        self._hire()

    @property
    def starts(self) -> int:
        """How many actors have been started."""
        return self._actors.starts

    def __iter__(self) -> Actors:
        return self

    def __next__(self) -> tuple[bytes, ...]:
        work = self.works[0]
        if self._done >= work.rounds:
            raise StopIteration
        while True:
            try:
                if not self._step:
                    self._gather()
                    self._begin()
                answers = self._answers(self._step)
                break
            except _LostError as lost:
                self._recover(lost.numbers)
        models = tuple(next(found for found in answers if isinstance(found, list) and found))
        self._models, self._done = models, min(self._done + work.every, work.rounds)
        self._step = set()
        if self._done < work.rounds and not self._actors.heard(self._actors.coming):
            self._advance()  # else all begin again, with those who have come
        return models

    def close(self) -> None:
        """End all actors, whatever they are doing."""
        self._actors.close()
        self._step = set()
        self._end_tracker()

    def _hire(self) -> None:
        """Start those that are missing."""
        for number in range(self.worker_group.actors):
            if number not in self._actors.there and number not in self._actors.coming:
                self._actors.start(number, self.place.uri, self.worker_group.threads)

    def _gather(self) -> None:
        """Wait for those that are starting; after a loss not for the lost ones with `elastic`, if others are there."""
        while self._actors.coming:
            enough = self.worker_group.recovery == "elastic" and self._losses > 0 and bool(self._actors.there)
            ends = self._actors.wait(0.0 if enough else LOOK_S, self._actors.coming)
            _check(ends, [end.key for end in ends if isinstance(end, ProcessLost)])
            if enough:
                return
            if self._actors.late(self.place.patience_s):
                raise self.place.no_start(len(self._actors.coming), self.worker_group)

    def _begin(self) -> None:
        """Divide the shards among those that are there, and train the first step."""
        from ray.util import get_node_ip_address
        from xgboost.tracker import RabitTracker

        before, there = self._tracker, sorted(self._actors.there)
        self._tracker = RabitTracker(n_workers=len(there), host_ip=get_node_ip_address(), sortby="task")
        self._tracker.start()
        where, count = self._tracker.worker_args(), len(there)
        for rank, number in enumerate(there):
            works = [
                replace(work, shards=work.shards[rank::count], model=model)
                for work, model in zip(self.works, self._models, strict=True)
            ]
            self._actors.ask(number, "begin", where, rank, works)
        try:
            self._answers(there)
        finally:
            _end(before)  # which actors tell that they leave it
        self.beginnings.append((time.monotonic(), self._done))
        self._advance()

    def _advance(self) -> None:
        self._step = set(self._actors.there)
        for number in self._step:
            self._actors.ask(number, "advance")

    def _answers(self, asked: Collection[int]) -> list[object]:
        """Return what all say. `_LostError`: some have died, or do not answer although others have failed."""
        waiting, until = set(asked), math.inf
        found, lost = list[CallEnd](), list[int]()
        while waiting:
            patience = None if until == math.inf else max(0.0, until - time.monotonic())
            ends = self._actors.wait(patience, waiting)
            if not ends and self._tracker is None:
                break
            if not ends:
                self._end_tracker()
                until = time.monotonic() + SETTLE_S
            for end in ends:
                waiting.discard(end.key)
                found.append(end)
                if isinstance(end, ProcessLost):
                    lost.append(end.key)
                if not isinstance(end, CallAnswered):
                    until = min(until, time.monotonic() + LEAVE_S)
        _check(found, [*lost, *waiting])
        return [end.answer for end in found if isinstance(end, CallAnswered)]

    def _recover(self, lost: Sequence[int]) -> None:
        """Start lost actors again, as `recovery` says."""
        self._losses += 1
        self._step = set()
        for number in [*self._actors.there, *lost] if self.worker_group.recovery == "cold" else lost:
            self._actors.end(number)
        if self._losses > RESTARTS:
            raise RunError(
                f"actors were lost {amount(self._losses, 'time')}, the last time after {amount(self._done, 'round')}."
            )
        self._hire()

    def _end_tracker(self) -> None:
        _end(self._tracker)
        self._tracker = None


class TrialPlace(RayPlace):
    """The place of a trial's worker group; see `tuning.models.shards.GroupPlace`."""

    def train(self, works: Sequence[TrainingJob], worker_group: ActorGroup, family: str) -> GroupTraining:
        """Start a worker group that trains the models of a trial, by XGBoost-Ray where that is asked for."""
        if family != xgboost_ray.FAMILY.name:
            return Actors(works, worker_group, self)
        from tuning.worker_groups.xgboost_ray import Folds

        return Folds(works, worker_group, self)


def _check(ends: Sequence[CallEnd], lost: Sequence[int]) -> None:
    """Raise `_LostError` where actors are lost, `RunError` where the code of one has raised."""
    if lost:
        raise _LostError(lost)
    for end in ends:
        if isinstance(end, CallRaised):
            raise RunError(f"XGBoost could not train: {raised(end.error)}")


def _end(tracker: RabitTracker | None) -> None:
    if tracker is not None:
        with contextlib.suppress(Exception):  # actors have gone without a word
            tracker.free()
