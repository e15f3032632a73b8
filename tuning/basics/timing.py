"""How long a run waits, and for what: one value, handed from the runner down to whoever waits."""

from __future__ import annotations

from dataclasses import dataclass, replace

SLOTS_PER_SECOND, STUDIES_PER_SECOND = 8, 250_000  # for each second between two parts


@dataclass(frozen=True)
class Timing:
    """Seconds. No user sets them; a test that cannot wait hands in its own.

    Attributes:
        heartbeat_s: between two writes of the lease.
        dead_after_s: an owner whose lease stood still for this long is dead.
        prepare_s: for which the look at one customer before a run waits for `prepare`, which has longer in the run.
        look_s: between two looks at the lease of another owner.
        progress_s, remote_progress_s: between two writes of the progress, into a run on a disk and on object storage.
        parts_s: between two parts of records. Many slots make it longer.
        checkpoint_s: between two checkpoints of a spread trial.
        storage_pause_s: before the second attempt at what the storage refuses; each further one is four times as long.
        actor_start_s: for which a trial waits for one of its actors to start; then it has failed.
        room_s: for which a trial or a worker waits for a machine with room for it, where none is left; clusters grow.
        own_room_s: the same on a Ray of one machine, to which none is added.
        cold_start_s: more than `limits` for the first study of a process that could not load its libraries beforehand.
        ray_start_s: from Ray's start to its first trial; what is left of a run and takes less is done without Ray.
        first_trial_s: for which a run waits for its first record before it starts Ray.
        attempt_pause_s: before the Tuner that follows one without progress, so that storage and nodes can come back.
        mlflow_look_s: between two looks for records to copy; small batches cost several times as much per run.
        mlflow_closing_s: for which the end of a run waits for its copy in MLflow.
        mlflow_interrupted_s: the same, when somebody has stopped the run.
        mlflow_patience_s: for which a failing store may fail once the run has ended; `tuning mlflow sync` has more.
    """

    heartbeat_s: float = 2.0
    dead_after_s: float = 20.0
    prepare_s: float = 60.0
    look_s: float = 0.5
    progress_s: float = 1.0
    remote_progress_s: float = 10.0
    parts_s: float = 1.0
    checkpoint_s: float = 5.0
    storage_pause_s: float = 0.1
    actor_start_s: float = 300.0
    room_s: float = 900.0
    own_room_s: float = 10.0
    cold_start_s: float = 10.0
    ray_start_s: float = 8.0
    first_trial_s: float = 3.0
    attempt_pause_s: float = 2.0
    mlflow_look_s: float = 2.0
    mlflow_closing_s: float = 60.0
    mlflow_interrupted_s: float = 5.0
    mlflow_patience_s: float = 10.0

    def of_run(self, slots: int, studies: int) -> Timing:
        """The same for a run of that size. A large one writes records less often, so that there are not too many files.

        Of 250,000 studies of 8 core-ms each, slots write 6,000 parts and packs of models; of a million no more.
        """
        return replace(self, parts_s=max(self.parts_s, slots / SLOTS_PER_SECOND, studies / STUDIES_PER_SECOND))


USUAL = Timing()

# Where `limits.trial_seconds` is not set, a trial that makes no step for so long is taken for one that hangs:
HANG_S = 600.0
HANG_S_PER_ROW = 0.01  # on top, as nothing is known of the first trials but their rows
HANG_S_OF_OBJECTIVE = 3600.0  # in place of HANG_S: a user's function may do anything
HANG_TIMES = 50  # times the longest trial before it, where that is more


def hang_seconds(rows: float, *, of_objective: bool) -> float:
    """How long a trial on so many rows may make no step before anything is known of how long trials take."""
    return (HANG_S_OF_OBJECTIVE if of_objective else HANG_S) + HANG_S_PER_ROW * rows
