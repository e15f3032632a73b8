"""How far a run is: what its owner shows, and writes into its folder for whoever comes later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from tuning.basics.wording import amount, duration, gain_text, one_line, value_text
from tuning.errors import StorageError
from tuning.records.lease import last_heartbeat
from tuning.records.ownership import Owner, newest_claimed
from tuning.storage.run_directory import RunDirectory

PROGRESS = "progress.json"  # in the run's folder

#: Of a run, as `Progress.state` describes them.
ProgressState: TypeAlias = Literal["running", "stopping", "finished", "spent", "stopped", "failed", "unfinished"]
RUNNING: ProgressState = "running"
STOPPING: ProgressState = "stopping"
UNFINISHED: ProgressState = "unfinished"


@dataclass(frozen=True, repr=False)
class Progress:
    """How far a run is.

    Attributes:
        state: `running` or `stopping` while the owner works. Then how its work has ended: all studies have `finished`,
            the time budget is `spent`, somebody has `stopped` it, workers or machines have `failed`; or `unfinished`,
            where the owner died or could not say it.
        customers: of the run, those who were done under earlier owners included.
        studies, trials: expected numbers of the run; a study that ends early lowers that of the trials.
        done_studies, done_trials: recorded numbers, by earlier owners, too.
        noun: what a study stands for: "customer", or "study" where a customer has several or there is none.
        share: the work that is done, from 0 to 1.
        median_gain: the median of the models' gains over the baseline on hold-out rows; None without a model.
        relative: whether the gain is in % of the baseline's error, as with metrics that are errors.
        best: the best score so far, of a run of one study.
        no_model: studies that ended without one.
        failed_trials: trials that raised or crashed.
        seconds: since the run's work began.
        rate: trials per second in the later half of the time since these workers' first report.
        seconds_left: at the latest rate of work, which is known ten seconds after the first report; until then at the
            rate of the run's last owner. None without either, and once that time has gone by without a report. A
            trial's work counts when it is recorded: how far workers are within a trial is not told.
        doing: what takes its time before the next result; "stopping" once somebody has stopped the run.
        slots: how many trials run at once.
        term: the number of the owner's term; each resume has a new one.
        owner: the process that works, or worked, on the run.
        updated: when these figures were so, by the owner's clock: ISO 8601, UTC.
    """

    state: ProgressState
    customers: int

    studies: int
    trials: int
    done_studies: int
    done_trials: int
    noun: str
    share: float
    median_gain: float | None
    relative: bool
    best: float | None
    no_model: int
    failed_trials: int
    seconds: float
    rate: float | None
    seconds_left: float | None
    doing: str
    slots: int
    term: int
    owner: Owner
    updated: str

    def to_dict(self) -> dict[str, object]:
        """The figures as plain values: what `--progress jsonl` prints and `progress.json` holds."""
        values = asdict(self)
        return {name: round(value, 6) + 0.0 if isinstance(value, float) else value for name, value in values.items()}

    def __repr__(self) -> str:
        return f"Progress({self})"

    def __str__(self) -> str:
        """The figures in a line, what matters most first."""
        return ", ".join(self._parts())

    def line(self, width: int) -> str:
        """The first of these figures that fit whole into so many characters, at least one."""
        parts = self._parts()
        while len(parts) > 1 and len(", ".join(parts)) > width:
            del parts[-1]
        return ", ".join(parts)

    def _parts(self) -> list[str]:
        several = self.studies > 1
        parts = [
            f"{self.done_studies}/{amount(self.studies, self.noun)}" * several,
            # of several studies it is not known before
            amount(self.done_trials, "trial") if several else f"{self.done_trials}/{amount(self.trials, 'trial')}",
            self._last_fits,
            "" if self.seconds_left is None else f"{duration(self.seconds_left)} left",
            ""
            if self.median_gain is None
            else f"{'median ' * (max(self.customers, self.studies) > 1)}gain "
            f"{gain_text(self.median_gain, self.relative, '+')}",
            "" if self.best is None or several else f"best {value_text(self.best)}",
            f"{self.no_model} without a model" * bool(self.no_model and several),
            f"{amount(self.failed_trials, 'trial')} failed" * bool(self.failed_trials),
            "" if self.rate is None else f"{self.rate:.3g} trials/s",
            self.doing,
        ]
        return [*filter(None, parts)]

    @property
    def _last_fits(self) -> str:
        """What still goes on where all trials are recorded."""
        left = self.studies - self.done_studies
        if self.state != RUNNING or not left or not 0 < self.trials <= self.done_trials or self.doing:
            return ""
        if self.noun == "study":
            return "choosing the winner" if left == 1 else f"choosing {amount(left, 'winner')}"
        return "the last fit goes on" if left == 1 else f"{left} last fits go on"


def now_text() -> str:
    """This moment as `Progress.updated` says it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def write_progress(directory: RunDirectory, progress: Progress) -> None:
    """Replace the progress in a run's folder."""
    directory.write(PROGRESS, json.dumps(progress.to_dict(), ensure_ascii=False).encode())


def read_progress(run_dir: RunDirectory | str | Path) -> Progress | None:
    """How far the owner of a run says it is; None before its first word.

    The state is that of now: `unfinished` where the owner has died on this machine, `running` where another has taken
    the run over and not yet said how far it is. When an owner on another machine dies, the state stays `running`;
    `updated` tells how old its word is. `StorageError` where the file cannot be read.
    """
    directory = run_dir if isinstance(run_dir, RunDirectory) else RunDirectory(run_dir)
    try:
        progress = _model().validate_json(directory.read(PROGRESS))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise StorageError(
            f"{directory.display(PROGRESS)} is damaged ({one_line(error)}). Remove it; a resume writes it anew."
        ) from error
    newest = newest_claimed(directory)
    taken_over = newest is not None and newest.number > progress.term
    if newest is None or not (taken_over or progress.state in (RUNNING, STOPPING)):
        return progress
    if newest.owner.is_dead or last_heartbeat(directory, newest).released:
        return replace(progress, state=UNFINISHED, seconds_left=None)
    return replace(progress, state=RUNNING, seconds_left=None) if taken_over else progress


def earlier_rate(directory: RunDirectory, slots: int) -> float | None:
    """Return the trials per second that the run's last owner would have on so many slots; None where it said none."""
    try:
        before = read_progress(directory)
    except StorageError:
        return None
    return None if before is None or before.rate is None else before.rate * slots / before.slots


@cache
def _model() -> TypeAdapter[Progress]:
    return TypeAdapter(Progress)
