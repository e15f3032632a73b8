"""What the driver hears from the workers: a Tune callback that passes reports on, and one progress line."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuning.execution.callback_keys import Key, lookup

if TYPE_CHECKING:
    from ray import tune
    from ray.tune.experiment import Trial
    from tqdm import tqdm

logger = logging.getLogger(__name__)

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

    n_trials, n_studies: how many there will be. seen: names of parts heard of.
    """

    n_trials: int
    n_studies: int
    shown: bool = True
    done_trials: int = 0
    done_studies: int = 0
    seen: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    _bar: tqdm | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Progress:
        if self.shown:
            from tqdm.auto import tqdm
            from tqdm.contrib.logging import logging_redirect_tqdm

            # A log file gets a line every half minute, a terminal or notebook one that moves.
            pause = 0.5 if sys.stderr.isatty() or "ipykernel" in sys.modules else 30.0
            self._bar = tqdm(total=self.n_trials, unit="trial", mininterval=pause, dynamic_ncols=True)
            self._stack.enter_context(logging_redirect_tqdm())  # a warning gets a line of its own, not the bar's
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()
        if self._bar is not None:
            if self.done_studies == self.n_studies:
                self._bar.total = self._bar.n  # customers without usable data had fewer trials than planned
            self._bar.close()

    def tell(self, sentences: Iterable[str]) -> None:
        """Show what should be read before the first result, a line each."""
        if self.shown:
            sys.stderr.writelines(f"{sentence}\n" for sentence in sentences)

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
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self.done_studies}/{self.n_studies} studies", refresh=False)
            self._bar.update(result.get("trials", 0))
