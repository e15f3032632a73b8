"""How Ray's schedulers see a trial: a view that stands where Ray's own trial would.

What a scheduler reads is looked up in the study's trial. What it does to a trial (checkpoint, exploit) becomes a call
on the study's side, which knows nothing of Ray.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Generic, Protocol, TypeVar

from schedulers.protocols import TrialResult
from tuning.study.local_trial import DonorState, LocalTrial, Snapshot
from tuning.study.trial import Trial

TrialT = TypeVar("TrialT", bound=Trial)


class TrialView(Generic[TrialT]):
    """A trial with the attributes of Ray's `Trial` that Ray's schedulers touch.

    An exploit of Ray's PBT is two of its calls: `set_config`, then a donor's checkpoint is put where Ray looks for the
    trial's latest one. Here the second one makes the trial take over the donor's state.

    reuses_snapshots: see `schedulers.pbt.Population`.
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
    def checkpoint(self) -> Snapshot:
        """Where the trial stands: a state that another trial can start from."""
        return _local(self.trial).snapshot(reused=self._reuses_snapshots)

    @property
    def run_metadata(self) -> SimpleNamespace:
        return SimpleNamespace(checkpoint_manager=_CheckpointManager(self.exploit))

    def exploit(self, donor: DonorState) -> None:
        """Let the trial go on from a donor's state, with the configuration that was set last."""
        _local(self.trial).take_over(donor, self._next_config)


class _TrainingResult(Protocol):
    """Ray's, as PBT makes it."""

    @property
    def checkpoint(self) -> object: ...


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
        if isinstance(result.checkpoint, DonorState):  # a copy of a trial's snapshot
            self._exploit(result.checkpoint)


def _local(trial: Trial) -> LocalTrial:
    """Return a trial with its state in this process; schedulers that ask for states are given no others."""
    assert isinstance(trial, LocalTrial)
    return trial
