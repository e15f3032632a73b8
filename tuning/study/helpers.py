"""Training in other processes: what is asked of a helper and what it answers, and which of several trains what.

A helper keeps the generators of its trials suspended between two requests, and gives a state of each where a decision
may come, so that a training whose helper has died goes on from there with another one. How requests reach helpers is a
`Link`'s business: `tuning.execution.helpers` has Ray's.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import cloudpickle

from tuning.errors import StudyError
from tuning.steps import Step
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import LocalTrial, Start
from tuning.study.record import worker_name
from tuning.timing import Timing
from tuning.wording import raised

#: A helper answers after so many seconds, be its request done or not: others may wait for it.
ANSWER_S = 2.0


@dataclass(frozen=True)
class Beginning:
    """What a training begins with.

    number: of its trial. state: whatever its `Link` carries; None for none. exact: whether it goes on from a state of
    its own as if it had never stopped.
    """

    number: int
    config: Configuration
    state: object = None
    exact: bool = True


@dataclass(frozen=True)
class Request:
    """Train some steps.

    training: its key. number, config: to begin it, or to begin it again; config is None where the helper goes on with
    what it keeps. steps: at most so many. save: whether a state is wanted after the last of them. dropped: keys of
    trainings that nobody needs any more.
    """

    training: int
    number: int
    config: Configuration | None
    steps: int
    save: bool = False
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True)
class Made:
    """One step.

    seconds, fit_seconds: wall and CPU time that it took. saves: whether the training code offers its state. aside:
    what it left beside the step.
    """

    step: Step
    seconds: float
    fit_seconds: float
    saves: bool
    worker: str
    aside: object = None


@dataclass(frozen=True)
class Ended:
    """No further step. reason: why training failed, None where it ended by itself. of_study: the study cannot go on."""

    seconds: float = 0.0
    fit_seconds: float = 0.0
    reason: str | None = None
    error: str | None = None
    of_study: bool = False


@dataclass(frozen=True)
class Answer:
    """What came of a request. saved: whether a state comes with it. problem: why there is none."""

    made: tuple[Made, ...]
    ended: Ended | None = None
    saved: bool = False
    problem: str = ""


class Trainer:
    """What a helper does.

    start: (config, number, state) -> generator of steps. aside: gives what training has left beside its last step.
    """

    def __init__(self, start: Start, timing: Timing, aside: Callable[[], object] = lambda: None) -> None:
        self._start, self._timing, self._aside = start, timing, aside
        self._kept: dict[int, LocalTrial] = {}
        self._saved: dict[int, float] = {}  # when the state of each was last given

    def train(self, request: Request, state: bytes | None) -> tuple[Answer, bytes | None]:
        """The answer to a request, and a state with it. state: to begin from."""
        for key in request.dropped:
            self._drop(key)
        key, began = request.training, time.monotonic()
        if request.config is not None:
            self._drop(key)
            trial = self._kept[key] = LocalTrial(request.number, f"{request.number:05d}", dict(request.config), "")
            trial.begin_from(None if state is None else pickle.loads(state))  # noqa: S301  # of this study's helpers
            self._saved[key] = began
        trial = self._kept[key]
        made: list[Made] = []
        while len(made) < request.steps:
            wall, cpu = trial.seconds, trial.fit_seconds
            of_study: StudyError | None = None
            try:
                step = trial.pull(self._start)
            except StudyError as error:
                step, of_study = None, error
            spent = trial.seconds - wall, trial.fit_seconds - cpu
            if step is None:
                self._drop(key)
                if of_study is not None:
                    return Answer(tuple(made), Ended(*spent, str(of_study), of_study=True)), None
                return Answer(tuple(made), Ended(*spent, trial.verdict and trial.verdict.reason, trial.error)), None
            made.append(Made(step, *spent, trial.get_state is not None, worker_name(), self._aside()))
            if time.monotonic() - began >= ANSWER_S:
                break
        done = len(made) == request.steps
        due = time.monotonic() - self._saved[key] >= self._timing.checkpoint_s
        if trial.get_state is None or not (due or (request.save and done)):
            return Answer(tuple(made)), None
        try:
            content = cloudpickle.dumps(trial.get_state())
        except Exception as error:
            return Answer(tuple(made), problem=raised(error)), None
        self._saved[key] = time.monotonic()
        return Answer(tuple(made), saved=True), content

    def _drop(self, key: int) -> None:
        self._saved.pop(key, None)
        if (trial := self._kept.pop(key, None)) is not None:
            trial.release()


@dataclass(frozen=True)
class Ready:
    """A helper can be sent its first request."""

    helper: int


@dataclass(frozen=True)
class Answered:
    """A helper has done what it was asked. state: whatever the link carries; None without one."""

    helper: int
    answer: Answer
    state: object


@dataclass(frozen=True)
class Lost:
    """A helper is gone with all that it kept. for_good: no other takes its place."""

    helper: int
    for_good: bool = False


class Link(Protocol):
    """The way to some helpers, which have numbers from 0."""

    @property
    def size(self) -> int:
        """How many helpers there are."""

    def send(self, helper: int, request: Request, state: object) -> None:
        """A request to a helper that has none. state: None, or what came with an answer."""

    def wait(self) -> Sequence[Ready | Answered | Lost]:
        """What happens next; waits for it."""


class NoStateError(Exception):
    """A helper could not give the state of a training."""


class RemoteTraining:
    """A trial's training with a helper: a generator that is asked for several steps at once.

    made: steps that are known of. at: steps after which its helper keeps it. saved: (steps, state) that came last.
    """

    __slots__ = ("_pool", "asked", "at", "beginning", "ended", "helper", "key", "made", "problem", "ready", "saved")

    def __init__(self, pool: HelperPool, key: int, beginning: Beginning) -> None:
        self._pool, self.key, self.beginning = pool, key, beginning
        self.helper: int | None = None
        self.asked = False
        self.made = self.at = 0
        self.saved: tuple[int, object] = (0, beginning.state)
        self.problem = ""
        self.ready: deque[Made] = deque()
        self.ended: Ended | None = None

    @property
    def taken(self) -> int:
        """How many of its steps somebody has taken."""
        return self.made - len(self.ready)

    @property
    def restart(self) -> tuple[int, object]:
        """(steps, state) from which another helper can train it without a difference."""
        return self.saved if self.beginning.exact else (0, self.beginning.state)

    def drop(self) -> None:
        """Nobody needs it any more."""
        self._pool.drop(self)

    def state_after(self, steps: int) -> object:
        """A state that another training can begin from; `NoStateError` where there is none."""
        return self._pool.state_after(self, steps)


@dataclass(frozen=True)
class Want:
    """A training is wanted up to so many steps. save: with a state after them."""

    training: RemoteTraining
    steps: int
    save: bool = False

    @property
    def met(self) -> bool:
        """Whether nothing is left to do."""
        return self.training.made >= self.steps or self.training.ended is not None


class HelperPool:
    """Which helper trains what: a training begins with the idle one that keeps fewest, and stays there.

    Where it could go on, its helper works for another one and its state is known, it goes on with an idle one.

    aside: is given what a training has left beside a step, when the step is taken.
    """

    def __init__(self, link: Link, aside: Callable[[object], None] = lambda _: None) -> None:
        self._link, self._aside = link, aside
        self._idle: set[int] = set()
        self._working: dict[int, RemoteTraining] = {}
        self._kept: dict[int, set[RemoteTraining]] = {helper: set() for helper in range(link.size)}
        self._dropped: dict[int, list[int]] = {}
        self._begun = 0

    @property
    def size(self) -> int:
        """How many helpers there are."""
        return len(self._kept)

    def begin(self, beginning: Beginning) -> RemoteTraining:
        """A new training. Its state: None, or another one's."""
        self._begun += 1
        return RemoteTraining(self, self._begun, beginning)

    def take(self, training: RemoteTraining, plan: Callable[[], Iterable[Want]]) -> Made | Ended:
        """The next step of a training, or its end; waits for it.

        plan: what helpers are to do, the most urgent first, this step among it; asked whenever one of them is idle.
        """
        found = self._next(training, plan)
        if isinstance(found, Made) and found.aside is not None:
            self._aside(found.aside)
        return found

    def _next(self, training: RemoteTraining, plan: Callable[[], Iterable[Want]]) -> Made | Ended:
        while not training.ready and training.ended is None:
            self._hand_out(plan())
            for event in self._link.wait():
                self._hear(event)
        if training.ready:
            return training.ready.popleft()
        assert training.ended is not None
        return training.ended

    def drop(self, training: RemoteTraining) -> None:
        """Nobody needs it any more."""
        if training.helper is not None:
            self._kept[training.helper].discard(training)
            self._dropped.setdefault(training.helper, []).append(training.key)
            training.helper = None

    def state_after(self, training: RemoteTraining, steps: int) -> object:
        """As of `RemoteTraining`; a training that has gone on since is begun again up to there."""
        if training.saved[0] != steps and not training.problem:
            training = self.begin(training.beginning)
            while training.taken < steps and training.ended is None:
                self._next(training, partial(_up_to, training, steps))  # these steps were taken before
            training.drop()
        if training.saved[0] != steps:
            raise NoStateError(training.problem or "there is none")
        return training.saved[1]

    def _hand_out(self, wants: Iterable[Want]) -> None:
        left = [want for want in wants if not want.met and not want.training.asked]
        for want in left:
            helper = want.training.helper
            if helper is None or helper in self._idle:
                self._send(helper, want)
        for want in left:
            training = want.training
            if training.helper in self._working and not training.asked and training.restart[0] == training.made:
                self._send(None, want)  # its own helper works for another; this one can go on from its state

    def _send(self, helper: int | None, want: Want) -> None:
        """Send a request; to any idle helper, if there is one, where the training begins, or leaves its own."""
        training, anew = want.training, helper is None
        if helper is None:
            if not self._idle:
                return
            self.drop(training)
            helper = min(self._idle, key=lambda each: (len(self._kept[each]), each))
            training.helper, training.at = helper, training.restart[0]
            self._kept[helper].add(training)
        request = Request(
            training.key,
            training.beginning.number,
            training.beginning.config if anew else None,
            want.steps - training.at,
            want.save,
            tuple(self._dropped.pop(helper, ())),
        )
        training.asked = True
        self._idle.discard(helper)
        self._working[helper] = training
        self._link.send(helper, request, training.restart[1] if anew else None)

    def _hear(self, event: Ready | Answered | Lost) -> None:
        training = self._working.pop(event.helper, None)
        if training is not None:
            training.asked = False
        if isinstance(event, Lost):
            for each in self._kept[event.helper]:
                each.helper = None
            self._kept[event.helper] = set()
            self._dropped.pop(event.helper, None)
            self._idle.discard(event.helper)
            if event.for_good:
                del self._kept[event.helper]
            return
        self._idle.add(event.helper)
        if isinstance(event, Answered) and training is not None and training.helper == event.helper:
            self._answered(training, event)

    def _answered(self, training: RemoteTraining, event: Answered) -> None:
        answer = event.answer
        for made in answer.made:
            training.at += 1
            if training.at > training.made:  # else it is trained again, because its helper was lost
                training.ready.append(made)
                training.made += 1
        training.ended, training.problem = answer.ended, answer.problem
        if answer.saved:
            training.saved = training.at, event.state
        if answer.ended is not None:
            self.drop(training)


def _up_to(training: RemoteTraining, steps: int) -> Iterator[Want]:
    yield Want(training, steps, save=True)
