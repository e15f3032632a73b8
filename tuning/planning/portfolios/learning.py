"""Learning a portfolio: which few configurations, tried one after another, leave the least regret on many tables.

Greedy, after the portfolios of Auto-sklearn 2.0 (Feurer et al. 2022, JMLR 23, section 4) and FLAML's zero-shot
AutoML: each next configuration is the one that reduces the mean regret most, here per square root of its cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

#: Regret of a configuration that failed, is missing, or is worse than the middle one: a portfolio gains nothing by it.
WORST = 1.0
#: Of a table's mean cost: loading and scoring have a price too, so no model counts as cheaper than this.
LEAST_COST = 0.1
NO_GAIN = 1e-9


class Cell(NamedTuple):
    """The result of one configuration on one table.

    Attributes:
        loss: smaller is better; in any unit, since tables are compared by their regrets only.
        seconds: its cost.
    """

    loss: float
    seconds: float = 1.0


LossTable = Mapping[str, Cell]


def learn(tables: Sequence[LossTable], size: int) -> list[str]:
    """At most `size` configurations, the most useful first; fewer where more would reduce no regret.

    The first one is the best alone, whatever it costs, since all others are compared with it. The result depends
    neither on the order of the tables nor on that of their cells.

    tables: by configuration (any text that names it). A configuration without a cell, or with a loss that is no finite
    number, has failed there. A table in which no two losses differ says nothing.
    """
    useful = [table for table in tables if len({cell.loss for cell in _finite(table).values()}) > 1]
    names = sorted({name for table in useful for name in _finite(table)})
    if not names:
        return []
    found = np.array([regrets(table, names) for table in useful])
    # Sorted: the mean of the same numbers in another order is another number.
    found = found[np.lexsort(found.T[::-1])]
    costs = _costs(useful, names)
    left, chosen = np.full(len(useful), WORST), list[int]()
    while len(chosen) < min(size, len(names)):
        gains = np.maximum(left[:, None] - found, 0.0).mean(axis=0)
        best = int(np.argmax(gains / np.sqrt(costs) if chosen else gains))
        if gains[best] <= NO_GAIN:
            break
        chosen.append(best)
        left = np.minimum(left, found[:, best])
    return [names[number] for number in chosen]


def _finite(table: LossTable) -> LossTable:
    return {name: cell for name, cell in table.items() if np.isfinite(cell.loss)}


def regrets(table: LossTable, names: Sequence[str]) -> list[float]:
    """Of some configurations on one table: 0 is the table's best one, 1 its middle one and whatever is worse."""
    cells = _finite(table)
    losses = [cell.loss for cell in cells.values()]
    best = min(losses)
    scale = float(np.median(losses)) - best or max(losses) - best
    return [min((cells[name].loss - best) / scale, WORST) if name in cells else WORST for name in names]


def _costs(tables: Sequence[LossTable], names: Sequence[str]) -> np.ndarray:
    """Of each configuration, in mean costs of its tables: the median over those that it did not fail on."""
    shares: dict[str, list[float]] = {name: [] for name in names}
    for table in tables:
        cells = _finite(table)
        mean = sum(cell.seconds for cell in cells.values()) / len(cells)
        for name, cell in cells.items():
            shares[name].append(cell.seconds / mean if mean > 0 else 1.0)
    return np.maximum([float(np.median(shares[name])) for name in names], LEAST_COST)
