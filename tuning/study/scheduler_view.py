"""How Ray's schedulers see a race: views that stand where Ray's own trials and controller would.

What a scheduler reads is looked up in the study's trial. What it does to a trial (pause, stop, checkpoint, exploit)
becomes a call on the study's side, which knows nothing of Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Generic, Protocol, TypeVar

from schedulers.protocols import TrialResult
from tuning.study.interfaces import Searcher
from tuning.study.local_trial import DonorState, LocalTrial, Snapshot
from tuning.study.trial import PAUSED, Trial

TrialT = TypeVar("TrialT", bound=Trial)


class TrialView(Generic[TrialT]):
    """A trial with the attributes of Ray's `Trial` that Ray's schedulers touch.

    An exploit of Ray's PBT is two of its calls: `set_config`, then a donor's checkpoint is put where Ray looks for the
    trial's latest one. Here the second one makes the trial take over the donor's state.

    reuses_snapshots: as of `schedulers.pbt.Population`.
    """

    __slots__ = ("_next_config", "_reuses_snapshots", "evaluated_params", "experiment_tag", "trial", "trial_id")

    is_saving = False
    temporary_state = SimpleNamespace(saving_to=None)

    def __init__(self, trial: TrialT, reuses_snapshots: bool = True) -> None:
        self.trial, self.trial_id = trial, trial.trial_id
        self._reuses_snapshots = reuses_snapshots
        self.experiment_tag = trial.trial_id
        self.evaluated_params: dict[str, object] = {}
        self._next_config = trial.config

    def __str__(self) -> str:
        return self.trial_id

    __repr__ = __str__

    @property
    def status(self) -> str:
        return self.trial.status

    @property
    def config(self) -> dict[str, object]:
        return self.trial.config

    @property
    def last_result(self) -> TrialResult:
        return self.trial.last_result

    def is_finished(self) -> bool:
        return self.trial.is_finished()

    def set_config(self, config: dict[str, object]) -> None:
        self._next_config = config

    def set_experiment_tag(self, tag: str) -> None:
        self.experiment_tag = tag

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the trial stands: a state that another trial can start from."""
        return Checkpoint(_local(self.trial).snapshot(), self._reuses_snapshots)

    @property
    def run_metadata(self) -> SimpleNamespace:
        return SimpleNamespace(checkpoint_manager=_CheckpointManager(self.exploit))

    def exploit(self, donor: DonorState) -> None:
        """Let the trial go on from a donor's state, with the configuration that was set last."""
        _local(self.trial).take_over(donor, self._next_config)


@dataclass
class Checkpoint:
    """What a scheduler passes on from one trial to another, without looking inside.

    reused: the scheduler hands it out again later, when its trial has gone on. state: what was read of it.
    """

    snapshot: Snapshot
    reused: bool
    state: DonorState | None = None

    def __copy__(self) -> Checkpoint:
        """Ray's PBT copies a checkpoint at the moment of an exploit: this is when the state is needed."""
        if self.reused:
            self.snapshot.keep()
        return Checkpoint(self.snapshot, self.reused, self.snapshot.read())


class _TrainingResult(Protocol):
    """Ray's, as PBT makes it."""

    @property
    def checkpoint(self) -> Checkpoint: ...


class _CheckpointManager:
    """Where Ray's PBT puts the checkpoint that a trial is to go on from."""

    checkpoint_config = SimpleNamespace(num_to_keep=None)

    def __init__(self, exploit: Callable[[DonorState], None]) -> None:
        self._exploit = exploit

    @property
    def _latest_checkpoint_result(self) -> None:
        return None

    @_latest_checkpoint_result.setter
    def _latest_checkpoint_result(self, result: _TrainingResult) -> None:
        if result.checkpoint.state is not None:
            self._exploit(result.checkpoint.state)


class ControllerView(Generic[TrialT]):
    """The trials of a race with the methods of Ray's controller that Ray's schedulers call.

    views: of the trials that have not ended. end_trial: ends a trial that is paused or pending. expecting: whether the
    study may still bring trials.
    """

    def __init__(
        self,
        views: Mapping[TrialT, TrialView[TrialT]],
        searcher: Searcher,
        end_trial: Callable[[TrialT], None],
        expecting: Callable[[], bool],
    ) -> None:
        self._views, self._end_trial, self._expecting = views, end_trial, expecting
        #: BOHB reaches its searcher through `search_alg.searcher`; PBT only checks the type.
        self.search_alg = SimpleNamespace(searcher=searcher)

    @property
    def more_to_come(self) -> bool:
        """Whether trials are still to be suggested or started, so that a bracket may wait for them."""
        return self._expecting()

    def get_trials(self) -> list[TrialView[TrialT]]:
        return list(self._views.values())

    def get_live_trials(self) -> list[TrialView[TrialT]]:
        return [view for view in self._views.values() if not view.is_finished()]

    def pause_trial(self, view: TrialView[TrialT], should_checkpoint: bool = True) -> None:
        view.trial.status = PAUSED

    def stop_trial(self, view: TrialView[TrialT]) -> None:
        """End a paused or pending trial; the running one is stopped by the scheduler's decision."""
        if not view.is_finished():
            self._end_trial(view.trial)

    def _schedule_trial_save(self, view: TrialView[TrialT], result: object = None) -> Checkpoint:
        """Ray's PBT asks for the state of a trial that runs."""
        checkpoint = view.checkpoint
        if checkpoint.reused:
            checkpoint.snapshot.keep()
        return checkpoint


def _local(trial: Trial) -> LocalTrial:
    """A trial whose state is in this process; schedulers that ask for states are given no others."""
    assert isinstance(trial, LocalTrial)
    return trial
