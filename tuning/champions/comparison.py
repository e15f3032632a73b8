"""What is kept of a champion and its challenger: figures of all rows that both have predicted."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from tuning.champions.evidence import Evidence
from tuning.champions.losses import MetricSoFar


@dataclass(frozen=True)
class RowComparison:
    """The evidence both ways, and the sums that gains are made of; of one customer or of many, as `Evidence`.

    better: that the challenger's loss is below the champion's by more than `least_gain`.
    worse: that it is above the champion's.
    rows: that both have predicted; groups and moments count as one row.
    champion, challenger: (...,) sums of losses. moments: (..., 3) sums of d * d, d * c and c * c of the champion's
        losses c and the differences d = c - challenger's.
    least_gain: as a share of the champion's loss. With another one evidence begins anew.
    metric: None where losses of rows say all.
    """

    better: Evidence
    worse: Evidence
    rows: int
    champion: np.ndarray
    challenger: np.ndarray
    moments: np.ndarray
    least_gain: float = 0.0
    metric: MetricSoFar | None = field(default=None)

    @classmethod
    def start(
        cls, earlier: np.ndarray, bound: float = math.inf, least_gain: float = 0.0, metric: MetricSoFar | None = None
    ) -> RowComparison:
        """Before the first new row; earlier, bound: as of `Evidence.start`."""
        shape = earlier.shape[:-1]
        evidence = Evidence.start(earlier, bound)
        return cls(evidence, evidence, 0, np.zeros(shape), np.zeros(shape), np.zeros((*shape, 3)), least_gain, metric)

    def after(self, champion: np.ndarray, challenger: np.ndarray) -> RowComparison:
        """With both losses (..., n) of new rows, which neither model has seen."""
        d = champion - challenger
        products = np.stack([(a * b).sum(axis=-1) for a, b in ((d, d), (d, champion), (champion, champion))], axis=-1)
        return replace(
            self,
            better=self.better.after(d - self.least_gain * champion),
            worse=self.worse.after(-d),
            rows=self.rows + d.shape[-1],
            champion=self.champion + champion.sum(axis=-1),
            challenger=self.challenger + challenger.sum(axis=-1),
            moments=self.moments + products,
        )

    def gain(self) -> np.ndarray:
        """(...,) by which share of the champion's loss the challenger's is smaller; NaN where there is no loss."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.champion > 0, (self.champion - self.challenger) / self.champion, np.nan)

    def gain_error(self) -> np.ndarray:
        """(...,) the standard error of the gain, of a ratio of means; NaN of fewer than two rows."""
        gain = self.gain()
        dd, dc, cc = np.moveaxis(self.moments, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.maximum(dd - 2 * gain * dc + gain**2 * cc, 0.0) * self.rows / (self.rows - 1)
            return np.where(self.champion > 0, np.sqrt(rest) / self.champion, np.nan)

    def to_json(self) -> str:
        """Of one customer, as it is kept in a release."""
        values = asdict(self)
        return json.dumps(values, default=lambda array: array.tolist(), separators=(",", ":"))

    @classmethod
    def of_json(cls, text: str) -> RowComparison:
        """What `to_json` has written."""
        values = json.loads(text)
        metric = values["metric"]
        return cls(
            better=Evidence.of_dict(values["better"]),
            worse=Evidence.of_dict(values["worse"]),
            rows=values["rows"],
            champion=np.asarray(values["champion"]),
            challenger=np.asarray(values["challenger"]),
            moments=np.asarray(values["moments"]),
            least_gain=values["least_gain"],
            metric=None if metric is None else MetricSoFar(**metric),
        )
