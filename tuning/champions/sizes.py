"""Customers of a size, and whether challengers are better among them as a group."""

from __future__ import annotations

import numpy as np

#: Rows that a customer's champion was fitted on: each size begins where the one before ends.
SIZES = {"under 100 rows": 0, "100 rows or more": 100, "1,000 rows or more": 1000, "10,000 rows or more": 10_000}


def size_of(rows: np.ndarray) -> np.ndarray:
    """(n,) the name of each customer's size."""
    names = np.asarray(list(SIZES))
    found: np.ndarray = names[np.searchsorted(list(SIZES.values()), rows, side="right") - 1]
    return found


def group_gains(differences: np.ndarray, champion: np.ndarray) -> np.ndarray:
    """What a week says of each customer of a group: the row that `Evidence` of the group gets for it.

    differences: (n,) means over the customer's new rows of the champion's loss less the challenger's.
    champion: (n,) the champion's mean loss on rows before these. A gain counts as 1 at most, which is on the safe side.

    The product of bets on customers is valid where these are independent of each other: what hits all in the same
    week is taken for as many weeks as there are customers.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.minimum(differences / champion, 1.0)
    return shares[np.isfinite(shares)]
