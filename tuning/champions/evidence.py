"""How sure new rows make it that a challenger is better, whenever one looks: an e-value that is gathered over weeks.

Each new row is a bet on the challenger, at stakes that were set before the row was seen. If it is no better, a bet
gains nothing on average, so the capital, which is the e-value, exceeds 1 / a with probability a at most, however often
one looks (Ville's inequality). A bet is exact for losses up to its reach. What goes beyond would have to be known to be
bounded, which losses are not: nobody can test the mean of what has no bound. So the capital counts only up to that of a
second bet, against "losses beyond the reach come at least once in a hundred rows", which n rows without one make worth
about 0.99^-n. What is sure is therefore: the challenger is better, unless it hides losses beyond the reach that are
rarer than one row in a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

#: Reaches of the bets, in usual differences, and which share of the capital is in each.
REACHES, SHARES = (7.0, 14.0, 28.0, 56.0), (0.5, 0.25, 0.125, 0.125)
#: Where it is known how large losses can be, reaches in those: all bets are exact.
BOUNDED_REACHES = (4.0, 8.0, 16.0, 32.0)
#: Losses beyond a reach that come as often as this, or more often, are seen.
RARE = 0.01
# Which share of both bets a loss beyond costs at least. The first is exact up to this share of its reach, and loses
# more from there, but not all, so that one row need not end it. The second gains the slower the more it keeps.
LOST, SECOND_LOST = 0.9, 0.95
# What each row costs the first, since rarer losses do happen: what tails cost that fall with the third power (Student's
# t with three degrees of freedom), and a quarter of it at twice the reach.
TAIL_COST = 2e-4
# The share of rows whose difference is the usual one at most; rows without any difference do not count.
USUAL = 0.9


def usual_difference(differences: np.ndarray) -> np.ndarray:
    """(...,) what nine in ten differences (..., n) are at most, of those that are not 0; NaN where all are."""
    sizes = np.sort(np.abs(differences), axis=-1)
    count = sizes.shape[-1]
    if count == 0:
        return np.full(sizes.shape[:-1], np.nan)
    other = np.count_nonzero(sizes, axis=-1)
    place = count - other + np.maximum(np.ceil(USUAL * other).astype(int), 1) - 1
    found = np.take_along_axis(sizes, np.expand_dims(np.minimum(place, count - 1), -1), -1)[..., 0]
    return np.where(other > 0, found, np.nan)


@dataclass(frozen=True)
class Evidence:
    """What is kept of all rows so far, of one customer (...,) = () or of many that have equally many rows.

    rows: (...,) how many were bet on.
    measured: (...,) of how many, with those before the first bet, `usual` is made.
    usual: (...,) the usual size of a difference; NaN until one was seen that is not 0.
    log_wealth: (..., bets) the logarithm of each bet's capital.
    beyond: (..., bets) rows with a loss beyond the reach.
    bound: how large a loss can be at all (1 where it is 0 or 1); infinite where nobody knows.
    """

    rows: np.ndarray
    measured: np.ndarray
    usual: np.ndarray
    log_wealth: np.ndarray
    beyond: np.ndarray
    bound: float = math.inf

    @classmethod
    def start(cls, earlier: np.ndarray, bound: float = math.inf) -> Evidence:
        """Before the first new row.

        earlier: (..., n) differences of older rows, such as the hold-out's, which tell only how large differences
        usually are. With n = 0 the first new rows do that, and are not bet on, unless there is a bound.
        """
        usual = usual_difference(earlier)
        measured = np.where(np.isfinite(usual), earlier.shape[-1], 0)
        none = np.zeros((*usual.shape, len(REACHES)))
        return cls(np.zeros_like(measured), measured, usual, none, none, bound)

    def to_dict(self) -> dict[str, object]:
        """It as plain values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value if name == "bound" else np.asarray(value).tolist() for name, value in values.items()}

    @classmethod
    def of_dict(cls, values: Mapping[str, object]) -> Evidence:
        """What `to_dict` has made."""
        bound = values["bound"]
        assert isinstance(bound, float)
        return cls(**{name: np.asarray(value) for name, value in values.items() if name != "bound"}, bound=bound)

    def after(self, differences: np.ndarray) -> Evidence:
        """With new rows (..., n) from which nothing has learned; positive is in favour of what the evidence is for."""
        count = differences.shape[-1]
        reaches = self._reaches()
        shares = [differences / reach[..., None] for reach in np.moveaxis(reaches, -1, 0)]
        gains = [_log_gain(share).sum(axis=-1) for share in shares]
        beyond = [np.count_nonzero(share < -LOST, axis=-1) for share in shares]
        new = usual_difference(differences)
        counted = np.where(np.isfinite(new), count, 0)
        return replace(
            self,
            rows=self.rows + np.where(np.isfinite(reaches[..., 0]), count, 0),
            measured=self.measured + counted,
            # Of weeks the mean: nine in ten of all rows would need them all.
            usual=_mean(self.usual, self.measured, new, counted),
            log_wealth=self.log_wealth + np.stack(gains, axis=-1),
            beyond=self.beyond + np.stack(beyond, axis=-1),
        )

    def log_e(self) -> np.ndarray:
        """(...,) the logarithm of the e-value."""
        counts = self.log_wealth
        if not math.isfinite(self.bound):
            within = math.log(1 - SECOND_LOST + SECOND_LOST / (1 - RARE))
            second = (self.rows[..., None] - self.beyond) * within + self.beyond * math.log(1 - SECOND_LOST)
            cost = np.log1p(-TAIL_COST * (REACHES[0] / np.asarray(REACHES)) ** 2)
            counts = np.minimum(counts + self.rows[..., None] * cost, second)
        found: np.ndarray = np.logaddexp.reduce(counts + np.log(SHARES), axis=-1)
        return found

    def _reaches(self) -> np.ndarray:
        """(..., bets) the reach of each bet on the next rows; infinite while nothing is known."""
        if math.isfinite(self.bound):
            return np.broadcast_to(np.asarray(BOUNDED_REACHES) * self.bound, self.log_wealth.shape)
        return np.nan_to_num(self.usual, nan=np.inf)[..., None] * np.asarray(REACHES)


def _log_gain(share: np.ndarray) -> np.ndarray:
    """What a row does to the logarithm of a bet's capital.

    It is `share` at most, so where the mean of all rows is not above 0, nothing is gained, however rare the losses are
    that make it so; and it falls with the square beyond the reach, as fast as such losses make means unsure.
    """
    beyond = np.minimum(share + LOST, 0.0)
    found: np.ndarray = np.log1p(np.maximum(share, -LOST)) + beyond - beyond**2 / 2
    return found


def _mean(first: np.ndarray, count: np.ndarray, second: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The mean of what was seen `count` and `more` times; NaN where neither was seen."""
    total = np.nan_to_num(first) * count + np.nan_to_num(second) * more
    return np.where(count + more > 0, total / np.maximum(count + more, 1), np.nan)
