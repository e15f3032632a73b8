"""What comes of comparing methods on tasks: the figures that are told by a sentence, tables, plots and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.blocks import TASK, Blocks
from tuning.compare.analysis.curves import Curves
from tuning.compare.analysis.hold_out import HoldOut
from tuning.compare.analysis.null_check import NullCheck, null_check
from tuning.compare.analysis.pairs import Pair, Pairs
from tuning.compare.analysis.statistics import Friedman
from tuning.notes import Note


@dataclass(frozen=True)
class Failures:
    """Where methods failed.

    Attributes:
        tasks: per method those without any finished trial; it counts as worst there.
        seeds: per method how many further searches finished no trial.
        trials: per method how many trials failed.
        everywhere: tasks on which every method failed; they are left out.
    """

    tasks: Mapping[str, tuple[str, ...]]
    seeds: Mapping[str, int]
    trials: Mapping[str, int]
    everywhere: tuple[str, ...]


@dataclass(frozen=True)
class Unfinished:
    """Searches of a run that are not compared, since it has not ended.

    Attributes:
        searches: how many have not finished.
        planned: of how many.
        unpaired: finished ones that are left out, since another algorithm has not finished the same repetition.
    """

    searches: int
    planned: int
    unpaired: int

    def sentence(self) -> str:
        also = f", and {self.unpaired} finished ones that they would be compared with" if self.unpaired else ""
        return f"NOT FINAL: {self.searches} of {self.planned} searches have not finished; they are left out{also}."


@dataclass(frozen=True)
class ComparisonResult:
    """The figures of a comparison.

    Attributes:
        curves: the data.
        results: any-time regret and ranks per axis (`trials`, `steps`, `seconds`).
        axis: the one that the verdict is on.
        blocks: what is paired and tested.
        friedman: Friedman's test; None with two methods or one block.
        pairs: every pair of methods.
        failures: where methods failed.
        baseline: the method that the others are tested against; None for the best.
        noun: what a task is called ("customer").
        source: where the curves come from.
        hold_out: the same on rows that no search has seen, where they are known.
        unfinished: what is missing of a run that has not ended; None of a complete one.
        remarks: notes on the search.
    """

    curves: Curves
    results: Mapping[str, Anytime]
    axis: str
    blocks: Blocks
    friedman: Friedman | None
    pairs: Pairs
    failures: Failures
    baseline: str | None
    noun: str = "task"
    source: str = ""
    hold_out: HoldOut | None = None
    unfinished: Unfinished | None = None
    remarks: tuple[Note, ...] = ()

    @property
    def final(self) -> Anytime:
        """The result on the verdict's axis."""
        return self.results[self.axis]

    @property
    def methods(self) -> tuple[str, ...]:
        return self.curves.methods

    @cached_property
    def ranks(self) -> np.ndarray:
        """Mean rank of each method over the blocks, at the end of the budget."""
        return np.asarray(rankdata(self.blocks.values, axis=0).mean(axis=1))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Methods from best to worst: by mean rank, then by mean regret."""
        keys = zip(self.ranks, self.blocks.clipped.mean(axis=1), range(len(self.methods)), strict=True)
        return tuple(self.methods[index] for *_, index in sorted(keys))

    @property
    def best(self) -> str:
        return self.order[0]

    @property
    def reference(self) -> str:
        """What the others are tested against: the named baseline, else the best."""
        return self.baseline or self.best

    @cached_property
    def comparisons(self) -> tuple[Pair, ...]:
        """Every other method against the reference, best first."""
        return tuple(self.pairs.pair(name, self.reference) for name in self.order if name != self.reference)

    @cached_property
    def null_check(self) -> NullCheck | None:
        """The A/A check, of random search where it took part; None with one task or one seed."""
        if self.blocks.unit != TASK:
            return None
        method = next((name for name in self.methods if name.startswith("random")), self.reference)
        return null_check(self.final, method)

    @cached_property
    def seeds(self) -> int:
        """The most seeds that any method has on any task."""
        return max(len(seeds) for row in self.final.seeds for seeds in row)

    def per_task(self) -> pd.DataFrame:
        """Regret at the end of the budget, task x method (clipped to [0, 1], seeds averaged)."""
        final = self.final
        return pd.DataFrame(final.clipped[:, :, -1].T, index=list(final.tasks), columns=list(final.methods))
