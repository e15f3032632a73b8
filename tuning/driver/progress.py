"""What the driver hears from the workers: a Tune callback that passes reports on, and one progress line."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuning.execution.callback_keys import Key, lookup
from tuning.timing import Timing
from tuning.wording import duration

if TYPE_CHECKING:
    from ray import tune
    from ray.tune.experiment import Trial
    from tqdm import tqdm

logger = logging.getLogger(__name__)

PACE_S = 5.0  # before this the first reports, which come all at once, say nothing of the pace
JUDGE_S = 1.0  # from the first trials on, before the pace is judged
BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} trials [{elapsed}{postfix}]"

Report = Mapping[str, Any]  # of a worker: the name of a part with the number of its trials or studies, or an error
Listener = Callable[[Report], None]


def hand_on(listener: Listener, result: Report) -> None:
    """Give a worker's report to a listener; never raises."""
    try:
        listener(result)
    except Exception:  # an exception in a callback would end the whole search
        logger.exception("a listener of the run failed; the search continues")


def reports_callback(listener: Key[Listener]) -> tune.Callback:
    """A `ray.tune.Callback` that hands each report of a worker to a listener."""
    from ray import tune

    class Reports(tune.Callback):
        def on_trial_result(self, iteration: int, trials: object, trial: Trial, result: Report, **info: object) -> None:
            hand_on(lookup(listener), result)

    return Reports()


@dataclass
class Progress:
    """Counts what workers report, and shows one line of it.

    n_trials, n_studies: how many there will be; a study that ends earlier leaves fewer trials. done_trials: those that
    were recorded before. seen: names of parts heard of.
    """

    n_trials: int
    n_studies: int
    shown: bool = True
    done_trials: int = 0
    done_studies: int = 0
    seen: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    _bar: tqdm | None = None
    _first: tuple[float, int] | None = None  # when the first report came, and how many trials were done then
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Progress:
        if self.shown:
            from tqdm.auto import tqdm
            from tqdm.contrib.logging import logging_redirect_tqdm

            # A log file gets a line every half minute, a terminal or notebook one that moves.
            pause = 0.5 if sys.stderr.isatty() or "ipykernel" in sys.modules else 30.0
            self._bar = tqdm(
                total=self.n_trials,
                initial=self.done_trials,
                unit="trial",
                mininterval=pause,
                dynamic_ncols=True,
                bar_format=BAR,
            )
            self._stack.enter_context(logging_redirect_tqdm())  # a warning gets a line of its own, not the bar's
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()
        if self._bar is not None:
            self._bar.close()

    def tell(self, sentences: Iterable[str]) -> None:
        """Show what should be read before the first result, a line each."""
        if self.shown:
            sys.stderr.writelines(f"{sentence}\n" for sentence in sentences)

    @property
    def left(self) -> str:
        """How long it will take at the pace since the first report; empty before that can be said."""
        since, before = self._first or (self.clock(), 0)
        took, done = self.clock() - since, self.done_trials - before
        if took < PACE_S or not done or self.done_trials >= self.n_trials:
            return ""
        return f", {duration(took / done * (self.n_trials - self.done_trials))} left"

    def says(self, what: str) -> None:
        """Show what takes its time before the first result."""
        if self._bar is not None:
            self._bar.set_postfix_str(what)

    def __call__(self, result: Report) -> None:
        if result.get("error"):
            self.errors.append(result["error"])
        part = result.get("part")
        if part is None or part in self.seen:
            return
        self.seen.add(part)
        self.done_trials += result.get("trials", 0)
        self.done_studies += result.get("studies", 0)
        self.n_trials -= result.get("unspent", 0)
        self._first = self._first or (self.clock(), self.done_trials)
        if self._bar is not None:
            self._bar.total = self.n_trials
            self._bar.set_postfix_str(f"{self.done_studies}/{self.n_studies} studies{self.left}", refresh=False)
            self._bar.update(result.get("trials", 0))


class Pace:
    """How fast trials come, from now on: by it what is left is judged. The first ones only set the clock: they wait for
    libraries.
    """

    def __init__(self, bar: Progress, timing: Timing) -> None:
        self._bar, self._patience = bar, timing.first_trial_s
        self._heard, self._done = bar.clock(), bar.done_trials
        self._first: tuple[float, int] | None = None

    def slower_than(self, seconds: float) -> bool:
        """Whether the rest takes longer than that, as far as is known; so it does where nothing comes."""
        now, done = self._bar.clock(), self._bar.done_trials
        if done > self._done:
            self._heard, self._done = now, done
            self._first = self._first or (now, done)
        if self._first is None:
            return now - self._heard > self._patience
        since, before = self._first
        if now - since < JUDGE_S:
            return False
        left = (now - since) / max(1, done - before) * (self._bar.n_trials - done)
        return max(left, now - self._heard) > seconds
