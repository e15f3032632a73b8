"""What a team may ask for: each refusal says what was asked for, used and allowed, and when there is room again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tuning.basics.wording import amount, duration
from tuning.errors import QuotaError
from tuning.service.database.runs import Submission
from tuning.service.queue.shares import DAY_S, TYPICAL_S, SlotUse
from tuning.service.settings import GB, Quotas


@dataclass(frozen=True)
class Used:
    """What a team has. uses: of slots in the last day. bytes: of its run directories."""

    queued: int = 0
    uses: Sequence[SlotUse] = ()
    bytes: int = 0

    def core_seconds(self, now: float, of_last: float) -> float:
        return sum(use.seconds(now, of_last) for use in self.uses)


def check(asked: Submission, quotas: Quotas, used: Used, total: int | None, now: float) -> None:
    """`QuotaError` for what a team may not have. total: the server's slots; None while they are not known."""
    team, slots, trials = asked.team, asked.slots_asked, asked.definition.get("trials")
    if slots is not None and total is not None and slots > total:
        raise QuotaError(f"`slots` is {slots:,}, but this server has {total:,} in all. Ask for fewer.")
    if slots is not None and quotas.slots is not None and slots > quotas.slots:
        raise QuotaError(f"`slots` is {slots:,}, but team {team!r} may have {quotas.slots:,} at once. Ask for fewer.")
    # Before its data are read, a run is known to have one study at least.
    if isinstance(trials, int) and quotas.trials_per_run is not None and trials > quotas.trials_per_run:
        raise QuotaError(
            f"the run has {amount(trials, 'trial')}, but team {team!r} may have {quotas.trials_per_run:,} in one "
            "run. Lower `trials`, or take fewer customers."
        )
    if quotas.storage_gb is not None and used.bytes >= quotas.storage_gb * GB:
        raise QuotaError(
            f"the runs of team {team!r} have {used.bytes / GB:,.2f} GB of {quotas.storage_gb:,g} GB. Delete some that "
            "have ended."
        )
    allowed, seconds = quotas.core_seconds_per_day, used.core_seconds(now, DAY_S)
    if allowed is not None and seconds >= allowed:
        # The first second at which enough of what was used is a day old.
        later = bisect_left(range(int(DAY_S)), True, key=lambda after: used.core_seconds(now, DAY_S - after) < allowed)
        raise QuotaError(
            f"team {team!r} has used {seconds:,.0f} core-seconds in the last 24 hours, and {allowed:,.0f} are allowed. "
            f"There is room again in about {duration(later)}.",
            later=later,
        )
    if quotas.queued_runs is not None and used.queued >= quotas.queued_runs:
        raise QuotaError(
            f"team {team!r} asks for 1 more queued run; {used.queued:,} wait, and {quotas.queued_runs:,} are allowed. "
            "There is room again when one of them begins or is cancelled.",
            later=TYPICAL_S,
        )
