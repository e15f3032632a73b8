"""How far a run is: counted from the reports of its workers, and written into its folder for whoever comes later.

Workers report parts of records, not trials, and figures are put into words a few times a second at most: a run of a
million customers brings six thousand reports.
"""

from __future__ import annotations

import json
import math
import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter, ValidationError

from tuning.basics.wording import amount, duration, gain_text, one_line, value_text
from tuning.errors import StorageError
from tuning.planning.run_plan import Plan
from tuning.records.gains import is_error
from tuning.records.lease import last_heartbeat
from tuning.records.ownership import Owner, newest_claimed
from tuning.records.parts import PartWritten
from tuning.records.schema import OK, POOLED
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import total_work

PROGRESS = "progress.json"  # in the run's folder
RATE_S = 10.0  # before this the first reports, which come all at once, say nothing of the rate
LEAST_LEFT_S = 0.5  # less would be shown as 0
RECOUNT = 1.01  # times as many gains as there were: then their median is computed anew

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

    state: ProgressState = RUNNING
    customers: int = 0
    studies: int = 0
    trials: int = 0
    done_studies: int = 0
    done_trials: int = 0
    noun: str = "customer"
    share: float = 0.0
    median_gain: float | None = None
    relative: bool = False
    best: float | None = None
    no_model: int = 0
    failed_trials: int = 0
    seconds: float = 0.0
    rate: float | None = None
    seconds_left: float | None = None
    doing: str = ""
    slots: int = 1
    term: int = 0
    owner: Owner = field(default_factory=Owner)
    updated: str = ""

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


@dataclass(frozen=True, slots=True)
class WorkerError:
    """A worker cannot work, or can have no place. message: why. code: that of the error, if one is why."""

    message: str
    code: str = ""


@dataclass
class Counter:
    """Counts what workers report.

    Attributes:
        counted: what is expected and what is recorded so far; `now` adds what the clock says.
        work, done_work: of all studies, in the unit of `Study.budget`.
        smaller: whether a smaller score is better.
        doing: see `Progress`; the next report clears it.
        ended: how the run has ended; empty while it goes on.
        on_part: called with the name of each new part.
        stopping: tells whether somebody has stopped the run.
        earlier_rate: trials per second of the run's last owner, on as many slots; None where there was none.
        errors: what kept workers from their work.
        lost_nodes: see `RunOutcome`.
    """

    counted: Progress
    work: float = 0.0
    done_work: float = 0.0
    smaller: bool = False
    doing: str = ""
    ended: ProgressState | Literal[""] = ""
    on_part: Callable[[str], None] = lambda _: None
    stopping: Callable[[], bool] = lambda: False
    earlier_rate: float | None = None
    errors: list[WorkerError] = field(default_factory=list)
    lost_nodes: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    _seen: set[str] = field(default_factory=set)  # parts that were reported
    _gains: array[float] = field(default_factory=lambda: array("d"))
    _median: tuple[int, float | None] = (0, None)  # of how many gains
    _first: float | None = None  # when these workers reported first
    _marks: deque[tuple[float, int, float]] = field(default_factory=deque)  # when, and the trials and work done by then

    def __post_init__(self) -> None:
        self._started = self.clock()

    @classmethod
    def for_plan(cls, plan: Plan, recorded: int, best: float | None = None, failed: int = 0) -> Counter:
        """Return a counter of what a plan has left.

        recorded: trials of it that are recorded already. best: the best score of these. failed: how many of these have.
        """
        trials, definition = plan.n_trials, plan.spec.definition
        each = len(plan.studies) <= plan.customers  # else some have several, as in a refresh
        customer = each and definition.compare is None and (definition.objective is None or len(plan.studies) > 1)
        counted = Progress(
            customers=plan.customers,
            studies=len(plan.studies),
            trials=trials,
            done_trials=recorded,
            noun="customer" if customer else "study",
            relative=is_error(plan.spec.metric),
            best=best,
            failed_trials=failed,
            slots=plan.slots,
        )
        done = total_work(plan.studies, ending=False) * recorded / max(1, trials)  # last fits are to come
        return cls(counted, total_work(plan.studies), done, plan.spec.mode == "min")

    def add_ended(self, studies: pa.Table) -> None:
        """Count the studies that had ended under earlier owners. studies: their records."""
        trials, before = pc.sum(studies["trials"], min_count=0).as_py(), self.counted
        work = trials * (self.work / before.trials if before.trials else 1.0)
        self.work, self.done_work = self.work + work, self.done_work + work
        self._gains.extend(studies["gain"].drop_null().to_pylist())
        self.counted = replace(
            before,
            studies=before.studies + len(studies),
            done_studies=before.done_studies + len(studies),
            trials=before.trials + trials,
            done_trials=before.done_trials + trials,
            failed_trials=before.failed_trials + pc.sum(studies["failed"], min_count=0).as_py(),
            no_model=before.no_model + sum(status not in (OK, POOLED) for status in studies["status"].to_pylist()),
        )

    def __call__(self, report: object) -> None:
        """Take in a worker's report, of any kind."""
        if self.doing:  # other workers than before, or none has reported yet, be it a step: the pace is theirs alone
            self.doing, self._first = "", None
            self._marks.clear()
        if isinstance(report, WorkerError):
            self.errors.append(report)
        if not isinstance(report, PartWritten) or report.part in self._seen:
            return
        self._seen.add(report.part)
        self.on_part(report.part)
        self.done_work += report.work
        self._gains.extend(report.gains)
        before = self.counted
        scores = [score for score in (before.best, report.best) if score is not None]
        self.counted = replace(
            before,
            trials=before.trials - report.unspent,
            done_trials=before.done_trials + report.trials,
            done_studies=before.done_studies + report.studies,
            failed_trials=before.failed_trials + report.failed,
            no_model=before.no_model + report.no_model,
            best=(min if self.smaller else max)(scores, default=None),
        )
        self._mark()

    def _mark(self) -> None:
        """Note how far the run is, and forget the earlier half of the time so far.

        The first trials wait for libraries, and a portfolio's take longer than those that a scheduler stops.
        """
        now = self.clock()
        self._first = now if self._first is None else self._first
        self._marks.append((now, self.counted.done_trials, self.done_work))
        while len(self._marks) > 1 and self._marks[1][0] <= (self._first + now) / 2:
            self._marks.popleft()

    def settle(self) -> None:
        """Count all studies as done, whether or not the last reports of workers have come."""
        self.counted = replace(self.counted, done_studies=self.counted.studies)

    @property
    def now(self) -> Progress:
        """How far the run is."""
        stopping = self.stopping()
        return replace(
            self.counted,
            state=self.ended or (STOPPING if stopping else RUNNING),
            share=min(1.0, self.done_work / self.work) if self.work else 0.0,
            median_gain=self._median_gain(),
            seconds=self.clock() - self._started,
            rate=self._rate(),
            seconds_left=None if stopping or self.ended else self._seconds_left(),
            doing="stopping" if stopping else self.doing,
            updated=now_text(),
        )

    def _known(self) -> bool:
        """Return whether these workers have reported for long enough that their rate is known."""
        return not self.doing and self._first is not None and self.clock() - self._first >= RATE_S

    def _rate(self) -> float | None:
        if not self._known():
            return None
        since, before, _ = self._marks[0]
        return (self.counted.done_trials - before) / (self.clock() - since) or None

    def _seconds_left(self) -> float | None:
        """Estimate by the rate at which work is done; before it is known by that of the run's last owner.

        It falls between two reports. None where it would be 0, or is over: something still goes on.
        """
        if self.counted.done_studies >= self.counted.studies:
            return None
        left, now = max(0.0, self.work - self.done_work), self.clock()
        if self._known():
            (since, _, before), last = self._marks[0], self._marks[-1][0]
            done = self.done_work - before
            seconds = last + (left * (last - since) / done if done > 0 else 0.0) - now
        elif self.earlier_rate and self.work:
            seconds = left / self.work * self.counted.trials / self.earlier_rate
        else:
            return None
        return seconds if seconds > LEAST_LEFT_S else None

    def _median_gain(self) -> float | None:
        """Return the median; of a million gains it takes ten milliseconds, so it is not computed for each of them."""
        count, (of, known) = len(self._gains), self._median
        if count >= max(of + 1, RECOUNT * of):
            found = float(np.median(np.array(self._gains)))
            known = found if math.isfinite(found) else None
            self._median = (count, known)
        return known


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
