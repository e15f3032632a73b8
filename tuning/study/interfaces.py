"""What a study asks of its searcher and its stopping rules; of schedulers see `schedulers.protocols`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from schedulers.protocols import Reason, TrialResult

#: Values of hyperparameters by name.
Configuration = Mapping[str, object]


class Searcher(Protocol):
    """The part of Ray Tune's `Searcher` that a study needs."""

    def suggest(self, trial_id: str) -> object:
        """Return a configuration; None when there is none now, anything else when there are no more."""

    def on_trial_complete(self, trial_id: str, result: TrialResult | None = None, error: bool = False) -> None:
        """A trial has ended: with the result that counts, or with an error."""

    def adopt(self, trial_id: str, config: Configuration) -> None:
        """A trial of an earlier attempt had another configuration than the one that was suggested now."""


@runtime_checkable
class ListeningSearcher(Searcher, Protocol):
    """One that learns from intermediate results."""

    def on_trial_result(self, trial_id: str, result: TrialResult) -> None:
        """A trial goes on after this step."""


class Rule(Protocol):
    """A built stopping rule, see `schedulers.stopping`."""

    def __call__(self, trial_id: str, result: TrialResult) -> bool:
        """Return whether this trial is to end after this step."""

    def stop_all(self) -> bool:
        """Return whether the study is to end."""

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        """A trial has ended: whether with its full budget, and with which score."""

    def on_replay(self, seconds: float) -> None:
        """A trial of an earlier attempt is replayed; it took so many seconds then."""

    def reason(self, trial_id: str) -> Reason | None:
        """Return why the rule has ended this trial."""

    def study_reason(self) -> Reason | None:
        """Return why the study is to end; None while it is not."""
