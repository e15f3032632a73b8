"""How far a run is, counted from the reports of its workers.

Workers report parts of records, not trials, and figures are put into words a few times a second at most: a run of a
million customers brings six thousand reports.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.execution.reports import Listener, PartWritten, WorkerError, WorkerReport
from tuning.planning.run_plan import Plan
from tuning.records.gains import is_error
from tuning.records.ownership import Term
from tuning.records.schema import OK, POOLED
from tuning.runs.progress import RUNNING, STOPPING, Progress, ProgressState, now_text
from tuning.study.study import total_work

logger = logging.getLogger(__name__)

RATE_S = 10.0  # before this the first reports, which come all at once, say nothing of the rate
LEAST_LEFT_S = 0.5  # less would be shown as 0
RECOUNT = 1.01  # times as many gains as there were: then their median is computed anew


def hand_on(listener: Listener, report: WorkerReport) -> None:
    """Give a worker's report to a listener; never raises."""
    try:
        listener(report)
    except Exception:  # an exception in a callback would end the whole search
        logger.exception("a listener of the run failed; the search continues")


@dataclass
class Counter:
    """Counts what workers report.

    Attributes:
        n_trials, n_studies: expected numbers.
        work: the work of all studies, in the unit of `Study.budget`.
        done_trials, done_work: recorded so far, by earlier owners of the run too.
        smaller: whether a smaller score is better.
        relative: see `Progress`.
        seen: names of the parts that were reported.
        errors: what kept workers from their work.
        lost_nodes: see `RunOutcome`.
        doing: see `Progress`; the next report clears it.
        customers, slots: see `Progress`.
        term: of the run's owner.
        on_part: called with the name of each new part.
        stopping: tells whether somebody has stopped the run.
        earlier_rate: trials per second of the run's last owner, on as many slots; None where there was none.
        ended: how the run has ended; empty while it goes on.
    """

    n_trials: int
    n_studies: int
    work: float = 0.0
    noun: str = "customer"
    smaller: bool = False
    relative: bool = False
    done_trials: int = 0
    done_studies: int = 0
    done_work: float = 0.0
    seen: set[str] = field(default_factory=set)
    errors: list[WorkerError] = field(default_factory=list)
    lost_nodes: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    doing: str = ""
    customers: int = 0
    slots: int = 1
    term: Term = field(default_factory=lambda: Term(0, ""))
    on_part: Callable[[str], None] = lambda _: None
    stopping: Callable[[], bool] = lambda: False
    earlier_rate: float | None = None
    ended: ProgressState | Literal[""] = ""
    _no_model: int = 0
    _failed: int = 0
    _best: float | None = None
    _gains: list[np.ndarray] = field(default_factory=list)
    _median: tuple[int, float | None] = (0, None)  # of how many gains
    _started: float = 0.0
    _first: float | None = None  # when these workers reported first
    _marks: deque[tuple[float, int, float]] = field(default_factory=deque)  # when, and the trials and work done by then

    def __post_init__(self) -> None:
        self._started = self.clock()

    @classmethod
    def for_plan(cls, plan: Plan, recorded: int, best: float | None = None, failed: int = 0) -> Counter:
        """Return a counter of what a plan has left.

        recorded: trials of it that are recorded already. best: the best score of these. failed: how many of these have.
        """
        trials, work, definition = plan.n_trials, total_work(plan.studies), plan.spec.definition
        each = len(plan.studies) <= plan.customers  # else some have several, as in a refresh
        customer = each and definition.compare is None and (definition.objective is None or len(plan.studies) > 1)
        return cls(
            trials,
            len(plan.studies),
            work,
            "customer" if customer else "study",
            plan.spec.mode == "min",
            is_error(plan.spec.metric),
            customers=plan.customers,
            slots=plan.slots,
            done_trials=recorded,
            done_work=total_work(plan.studies, ending=False) * recorded / max(1, trials),  # last fits are to come
            _best=best,
            _failed=failed,
        )

    def add_ended(self, studies: pa.Table) -> None:
        """Count the studies that had ended under earlier owners. studies: their records."""
        trials = pc.sum(studies["trials"], min_count=0).as_py()
        work = trials * (self.work / self.n_trials if self.n_trials else 1.0)
        self.n_studies, self.done_studies = self.n_studies + len(studies), self.done_studies + len(studies)
        self.n_trials, self.done_trials = self.n_trials + trials, self.done_trials + trials
        self.work, self.done_work = self.work + work, self.done_work + work
        self._failed += pc.sum(studies["failed"], min_count=0).as_py()
        self._no_model += sum(status not in (OK, POOLED) for status in studies["status"].to_pylist())
        if len(gains := studies["gain"].drop_null()):
            self._gains.append(gains.to_numpy())

    def __call__(self, report: WorkerReport) -> None:
        if isinstance(report, WorkerError):
            self.errors.append(report)
        if self.doing:  # other workers than before, or none has reported yet, be it a step: the pace is theirs alone
            self.doing, self._first = "", None
            self._marks.clear()
        if not isinstance(report, PartWritten) or report.part in self.seen:
            return
        self.seen.add(report.part)
        self.on_part(report.part)
        self.done_trials += report.trials
        self.done_studies += report.studies
        self.n_trials -= report.unspent
        self.done_work += report.work
        self._failed += report.failed
        self._no_model += report.no_model
        if report.gains:
            self._gains.append(np.array(report.gains))
        if report.best is not None:
            known = report.best if self._best is None else self._best
            self._best = min(known, report.best) if self.smaller else max(known, report.best)
        now = self.clock()
        self._first = now if self._first is None else self._first
        self._marks.append((now, self.done_trials, self.done_work))
        # The later half of the time so far: the first trials wait for libraries, and a portfolio's take longer than
        # those that a scheduler stops.
        while len(self._marks) > 1 and self._marks[1][0] <= (self._first + now) / 2:
            self._marks.popleft()

    def settle(self) -> None:
        """Count all studies as done, whether or not the last reports of workers have come."""
        self.done_studies = self.n_studies

    @property
    def now(self) -> Progress:
        """How far the run is."""
        stopping = self.stopping()
        return Progress(
            state=self.ended or (STOPPING if stopping else RUNNING),
            customers=self.customers,
            studies=self.n_studies,
            trials=self.n_trials,
            done_studies=self.done_studies,
            done_trials=self.done_trials,
            noun=self.noun,
            share=min(1.0, self.done_work / self.work) if self.work else 0.0,
            median_gain=self._median_gain(),
            relative=self.relative,
            best=self._best,
            no_model=self._no_model,
            failed_trials=self._failed,
            seconds=self.clock() - self._started,
            rate=self._rate(),
            seconds_left=None if stopping or self.ended else self._seconds_left(),
            doing="stopping" if stopping else self.doing,
            slots=self.slots,
            term=self.term.number,
            owner=self.term.owner,
            updated=now_text(),
        )

    def _known(self) -> bool:
        """Return whether these workers have reported for long enough that their rate is known."""
        return not self.doing and self._first is not None and self.clock() - self._first >= RATE_S

    def _rate(self) -> float | None:
        if not self._known():
            return None
        since, before, _ = self._marks[0]
        return (self.done_trials - before) / (self.clock() - since) or None

    def _seconds_left(self) -> float | None:
        """Estimate by the rate at which work is done; before it is known by that of the run's last owner.

        It falls between two reports. None where it would be 0, or is over: something still goes on.
        """
        if self.done_studies >= self.n_studies:
            return None
        left, now = max(0.0, self.work - self.done_work), self.clock()
        if self._known():
            (since, _, before), last = self._marks[0], self._marks[-1][0]
            done = self.done_work - before
            seconds = last + (left * (last - since) / done if done > 0 else 0.0) - now
        elif self.earlier_rate and self.work:
            seconds = left / self.work * self.n_trials / self.earlier_rate
        else:
            return None
        return seconds if seconds > LEAST_LEFT_S else None

    def _median_gain(self) -> float | None:
        """Return the median; of a million gains it takes ten milliseconds, so it is not computed for each of them."""
        parts = list(self._gains)
        count, (of, known) = sum(map(len, parts)), self._median
        if count >= max(of + 1, RECOUNT * of):
            found = float(np.median(np.concatenate(parts)))
            self._median = (count, found if math.isfinite(found) else None)
            return self._median[1]
        return known
