"""What `transfer` gained, measured in the run itself: those who learned from others against those who could have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tuning.records.schema import OK, StudyRecord
from tuning.study.study import CONTROL, FOLLOWER

FEWEST = 10  # studies of each side; with fewer an interval says nothing
LEVEL = 0.95


@dataclass(frozen=True)
class TransferGain:
    """Followers against controls.

    Attributes:
        followers, controls: how many customers, each with a score on hold-out rows.
        difference: of the mean gains of both, each gain as a share of its baseline's score and at most that; above 0
            those who learned did better.
        low, high: its confidence interval at 95 %.
        trials, control_trials: per customer.
        seconds, control_seconds: CPU seconds per customer.
    """

    followers: int
    controls: int
    difference: float
    low: float
    high: float
    trials: float
    control_trials: float
    seconds: float
    control_seconds: float

    @property
    def sentence(self) -> str:
        """The same in words."""
        interval = f"95 % interval {100 * self.low:+.1f} to {100 * self.high:+.1f}"
        return (
            f"transfer: {self.followers} customers learned from others, with {self.trials:.1f} trials and "
            f"{self.seconds:.2g} CPU seconds each; {self.controls} did not, with {self.control_trials:.1f} and "
            f"{self.control_seconds:.2g}. The gain over the baseline differs by {100 * self.difference:+.1f} % of its "
            f"score ({interval})."
        )


def transfer_gain(records: Iterable[StudyRecord]) -> TransferGain | None:
    """What a run's studies say; None without controls, or while there are too few."""
    scored = [record for record in records if record.status == OK and _share(record) is not None]
    sides = [[record for record in scored if record.group == group] for group in (FOLLOWER, CONTROL)]
    if min(map(len, sides)) < FEWEST:
        return None
    from scipy.stats import ttest_ind

    followers, controls = sides
    one, other = _shares(followers), _shares(controls)
    difference, low, high = fmean(one) - fmean(other), 0.0, 0.0
    if len({*one}) > 1 or len({*other}) > 1:
        interval = ttest_ind(one, other, equal_var=False).confidence_interval(LEVEL)
        low, high = float(interval.low), float(interval.high)
    return TransferGain(
        followers=len(followers),
        controls=len(controls),
        difference=difference,
        low=low,
        high=high,
        trials=fmean(record.trials for record in followers),
        control_trials=fmean(record.trials for record in controls),
        seconds=fmean(record.fit_seconds for record in followers),
        control_seconds=fmean(record.fit_seconds for record in controls),
    )


def _shares(records: Sequence[StudyRecord]) -> list[float]:
    return [share for record in records if (share := _share(record)) is not None]


def _share(record: StudyRecord) -> float | None:
    """A gain as a share of the baseline's score, so that customers can be compared whatever their unit."""
    if record.gain is None or not record.baseline_test_score:
        return None
    return max(-1.0, min(1.0, record.gain / abs(record.baseline_test_score)))
