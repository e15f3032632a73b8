"""Training in other processes: the messages to and from a helper, its side, and the pool that gives out the work.

A helper keeps the generators of its trials suspended between two requests. It gives a state of each where a decision
may come. After its helper's death a training goes on from that state with another one. A `HelperLink` carries requests
to helpers: `tuning.execution.helper_actors` has Ray's.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import cloudpickle

from tuning.basics.timing import Timing
from tuning.basics.wording import raised
from tuning.errors import StudyError
from tuning.notes import Note
from tuning.steps import Step
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import LocalTrial, StartTraining
from tuning.study.record import worker_name

#: A helper answers after so many seconds, whether its request is done or not: others may wait for it.
ANSWER_S = 2.0


@dataclass(frozen=True)
class TrainingStart:
    """What a training begins with.

    number: of its trial. state: whatever its `HelperLink` carries; None for none. exact: whether it goes on from a
    state of its own as if it had never stopped.
    """

    number: int
    config: Configuration
    state: object = None
    exact: bool = True


@dataclass(frozen=True)
class TrainingRequest:
    """A helper is to train some steps.

    training: its key. number, config: to begin it, or to begin it again; config is None where the helper goes on with
    the training that it has. steps: at most so many. save: whether a state is wanted after the last of them. dropped:
    keys of trainings that nobody needs any more.
    """

    training: int
    number: int
    config: Configuration | None
    steps: int
    save: bool = False
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True)
class TrainedStep:
    """One step.

    seconds, fit_seconds: its wall and CPU time. saves: whether the training code offers its state. extra: what the
    training code left with the step, such as predictions.
    """

    step: Step
    seconds: float
    fit_seconds: float
    saves: bool
    worker: str
    extra: object = None


@dataclass(frozen=True)
class TrainingEnd:
    """A training has no further step.

    reason: why it failed; None where it ended by itself. error: the traceback. of_study: the study cannot go on.
    """

    seconds: float = 0.0
    fit_seconds: float = 0.0
    reason: Note | None = None
    error: str | None = None
    of_study: bool = False


@dataclass(frozen=True)
class TrainingAnswer:
    """A helper's answer to a request. saved: whether a state comes with it. problem: why there is none."""

    steps: tuple[TrainedStep, ...]
    end: TrainingEnd | None = None
    saved: bool = False
    problem: str = ""


class HelperTrainer:
    """A helper's side: it trains as it is asked, and keeps its trials' generators in between.

    start: (config, number, state) -> generator of steps. extra: gives what the training code left with its last step.
    """

    def __init__(self, start: StartTraining, timing: Timing, extra: Callable[[], object] = lambda: None) -> None:
        self._start, self._timing, self._extra = start, timing, extra
        self._kept: dict[int, LocalTrial] = {}
        self._saved: dict[int, float] = {}  # when the state of each was last given

    def train(self, request: TrainingRequest, state: bytes | None) -> tuple[TrainingAnswer, bytes | None]:
        """Return the answer to a request, and a state with it. state: to begin from."""
        for key in request.dropped:
            self._drop(key)
        key, began = request.training, time.monotonic()
        if request.config is not None:
            self._drop(key)
            trial = self._kept[key] = LocalTrial(request.number, f"{request.number:05d}", dict(request.config), "")
            trial.begin_from(None if state is None else pickle.loads(state))  # noqa: S301  # of this study's helpers
            self._saved[key] = began
        trial = self._kept[key]
        steps: list[TrainedStep] = []
        while len(steps) < request.steps:
            wall, cpu = trial.seconds, trial.fit_seconds
            of_study: StudyError | None = None
            try:
                step = trial.pull(self._start)
            except StudyError as error:
                step, of_study = None, error
            spent = trial.seconds - wall, trial.fit_seconds - cpu
            if step is None:
                self._drop(key)
                end = TrainingEnd(*spent, trial.verdict and trial.verdict.reason, trial.error)
                if of_study is not None:
                    end = TrainingEnd(*spent, of_study.note, of_study=True)
                return TrainingAnswer(tuple(steps), end), None
            steps.append(TrainedStep(step, *spent, trial.get_state is not None, worker_name(), self._extra()))
            if time.monotonic() - began >= ANSWER_S:
                break
        done = len(steps) == request.steps
        due = time.monotonic() - self._saved[key] >= self._timing.checkpoint_s
        if trial.get_state is None or not (due or (request.save and done)):
            return TrainingAnswer(tuple(steps)), None
        try:
            content = cloudpickle.dumps(trial.get_state())
        except Exception as error:
            return TrainingAnswer(tuple(steps), problem=raised(error)), None
        self._saved[key] = time.monotonic()
        return TrainingAnswer(tuple(steps), saved=True), content

    def _drop(self, key: int) -> None:
        self._saved.pop(key, None)
        if (trial := self._kept.pop(key, None)) is not None:
            trial.release()


@dataclass(frozen=True)
class HelperReady:
    """A helper can be sent its first request."""

    helper: int


@dataclass(frozen=True)
class HelperAnswered:
    """A helper has done what it was asked. state: whatever the link carries; None without one."""

    helper: int
    answer: TrainingAnswer
    state: object


@dataclass(frozen=True)
class HelperLost:
    """A helper is gone with all that it kept. for_good: no other takes its place."""

    helper: int
    for_good: bool = False


class HelperLink(Protocol):
    """The way to some helpers, which have numbers from 0."""

    @property
    def size(self) -> int:
        """How many helpers there are."""

    def send(self, helper: int, request: TrainingRequest, state: object) -> None:
        """Send a request to a helper that has none. state: None, or what came with an answer."""

    def wait(self) -> Sequence[HelperReady | HelperAnswered | HelperLost]:
        """Wait for what happens next, and return it."""


class NoStateError(Exception):
    """A helper could not give the state of a training."""


@dataclass(slots=True, eq=False, repr=False)
class RemoteTraining:
    """A trial's training with a helper: a generator that is asked for several steps at once.

    trained: how many of its steps are known. kept_at: after so many steps its helper keeps it. saved: (steps, state) of
    the last state that came. ready: steps that nobody has taken yet.
    """

    _pool: HelperPool
    key: int
    beginning: TrainingStart
    helper: int | None = None
    asked: bool = False
    trained: int = 0
    kept_at: int = 0
    saved: tuple[int, object] = (0, None)
    problem: str = ""
    ready: deque[TrainedStep] = field(default_factory=deque)
    end: TrainingEnd | None = None

    def __post_init__(self) -> None:
        self.saved = (0, self.beginning.state)

    @property
    def taken(self) -> int:
        """How many of its steps somebody has taken."""
        return self.trained - len(self.ready)

    @property
    def restart(self) -> tuple[int, object]:
        """(steps, state) from which another helper trains it without a difference."""
        return self.saved if self.beginning.exact else (0, self.beginning.state)

    def drop(self) -> None:
        """Nobody needs it any more."""
        self._pool.drop(self)

    def state_after(self, steps: int) -> object:
        """Return a state that another training can begin from; `NoStateError` where there is none."""
        return self._pool.state_after(self, steps)


@dataclass(frozen=True)
class Demand:
    """A training is needed up to so many steps. save: with a state after them."""

    training: RemoteTraining
    steps: int
    save: bool = False

    @property
    def met(self) -> bool:
        """Whether nothing is left to do."""
        return self.training.trained >= self.steps or self.training.end is not None


class HelperPool:
    """The helpers of a study, and which of them trains what.

    Each training is pinned to the idle helper that keeps fewest. If that helper is busy and a saved state exists, the
    training moves to an idle one.

    on_extra: is given the `TrainedStep.extra` of a step when the step is taken.
    """

    def __init__(self, link: HelperLink, on_extra: Callable[[object], None] = lambda _: None) -> None:
        self._link, self._on_extra = link, on_extra
        self._idle: set[int] = set()
        self._working: dict[int, RemoteTraining] = {}
        self._kept: dict[int, set[RemoteTraining]] = {helper: set() for helper in range(link.size)}
        self._dropped: dict[int, list[int]] = {}
        self._trainings = 0

    @property
    def size(self) -> int:
        """How many helpers there are."""
        return len(self._kept)

    def begin(self, beginning: TrainingStart) -> RemoteTraining:
        """Begin a training. Its state: None, or another one's."""
        self._trainings += 1
        return RemoteTraining(self, self._trainings, beginning)

    def take(self, training: RemoteTraining, plan: Callable[[], Iterable[Demand]]) -> TrainedStep | TrainingEnd:
        """Return the next step of a training, or its end; waits for it.

        plan: what helpers are to do, the most urgent first, this step among it; asked whenever one of them is idle.
        """
        found = self._next(training, plan)
        if isinstance(found, TrainedStep) and found.extra is not None:
            self._on_extra(found.extra)
        return found

    def _next(self, training: RemoteTraining, plan: Callable[[], Iterable[Demand]]) -> TrainedStep | TrainingEnd:
        while not training.ready and training.end is None:
            self._hand_out(plan())
            for event in self._link.wait():
                self._handle(event)
        if training.ready:
            return training.ready.popleft()
        assert training.end is not None
        return training.end

    def drop(self, training: RemoteTraining) -> None:
        """Nobody needs it any more."""
        if training.helper is not None:
            self._kept[training.helper].discard(training)
            self._dropped.setdefault(training.helper, []).append(training.key)
            training.helper = None

    def state_after(self, training: RemoteTraining, steps: int) -> object:
        """See `RemoteTraining`; a training that has gone on since is begun again up to there."""
        if training.saved[0] != steps and not training.problem:
            training = self.begin(training.beginning)
            while training.taken < steps and training.end is None:
                self._next(training, partial(_up_to, training, steps))  # these steps were taken before
            training.drop()
        if training.saved[0] != steps:
            raise NoStateError(training.problem or "there is none")
        return training.saved[1]

    def _hand_out(self, demands: Iterable[Demand]) -> None:
        left = [demand for demand in demands if not demand.met and not demand.training.asked]
        for demand in left:
            helper = demand.training.helper
            if helper is None or helper in self._idle:
                self._send(helper, demand)
        for demand in left:
            training = demand.training
            if training.helper in self._working and not training.asked and training.restart[0] == training.trained:
                self._send(None, demand)  # its own helper works for another; this one can go on from its state

    def _send(self, helper: int | None, demand: Demand) -> None:
        """Send a request; to any idle helper, if there is one, where the training begins, or leaves its own."""
        training, anew = demand.training, helper is None
        if helper is None:
            if not self._idle:
                return
            self.drop(training)
            helper = min(self._idle, key=lambda each: (len(self._kept[each]), each))
            training.helper, training.kept_at = helper, training.restart[0]
            self._kept[helper].add(training)
        request = TrainingRequest(
            training.key,
            training.beginning.number,
            training.beginning.config if anew else None,
            demand.steps - training.kept_at,
            demand.save,
            tuple(self._dropped.pop(helper, ())),
        )
        training.asked = True
        self._idle.discard(helper)
        self._working[helper] = training
        self._link.send(helper, request, training.restart[1] if anew else None)

    def _handle(self, event: HelperReady | HelperAnswered | HelperLost) -> None:
        training = self._working.pop(event.helper, None)
        if training is not None:
            training.asked = False
        if isinstance(event, HelperLost):
            for each in self._kept[event.helper]:
                each.helper = None
            self._kept[event.helper] = set()
            self._dropped.pop(event.helper, None)
            self._idle.discard(event.helper)
            if event.for_good:
                del self._kept[event.helper]
            return
        self._idle.add(event.helper)
        if isinstance(event, HelperAnswered) and training is not None and training.helper == event.helper:
            self._answered(training, event)

    def _answered(self, training: RemoteTraining, event: HelperAnswered) -> None:
        answer = event.answer
        for step in answer.steps:
            training.kept_at += 1
            if training.kept_at > training.trained:  # else it is trained again, because its helper was lost
                training.ready.append(step)
                training.trained += 1
        training.end, training.problem = answer.end, answer.problem
        if answer.saved:
            training.saved = training.kept_at, event.state
        if answer.end is not None:
            self.drop(training)


def _up_to(training: RemoteTraining, steps: int) -> Iterator[Demand]:
    yield Demand(training, steps, save=True)
