"""What weeks of losses say about ways to serve customers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.quality.judgement import interval
from benchmarks.weeks.ways import NEVER, RETRAIN, WeeklyWay
from tuning.serving.plan import BETTER

WORSE = 1.02  # times the loss of the first model, from which a customer is made worse


@dataclass(frozen=True)
class WaySummary:
    """One way on one set.

    loss_vs: of other ways: by which share the mean losses of customers are larger than there: the geometric mean, with
        the paired interval over customers.
    core_s: after the first search. worse_ever: share of customers whose loss was 2 % or more above that of their first
        model in a week; None where a week has too few rows to say. worse_overall: the same of all weeks together.
    """

    way: str
    loss_vs: dict[str, tuple[float, float, float]]
    core_s: float
    promotions: int
    false_promotions: int | None
    worse_ever: float | None
    worse_overall: float


def summary(losses: pd.DataFrame, ways: Sequence[WeeklyWay], weeks_tell: bool) -> list[WaySummary]:
    """Of each way. losses: columns way, customer, week, loss, rows; weeks_tell: whether a single week's rows do."""
    each = losses.set_index(["customer", "week", "way"])["loss"].unstack("way")
    rows = losses.drop_duplicates(["customer", "week"]).set_index(["customer", "week"])["rows"].reindex(each.index)
    weight = rows / rows.groupby("customer").transform("sum")
    means = each.mul(weight, axis=0).groupby("customer").sum()
    worse_week = each.ge(WORSE * each[NEVER], axis=0).groupby("customer").any()
    worse = means.ge(WORSE * means[NEVER], axis=0)
    return [
        WaySummary(
            way=way.name,
            loss_vs={name: ratio(means[way.name], means[name]) for name in (RETRAIN, BETTER) if name in means},
            core_s=way.seconds,
            promotions=way.promotions,
            false_promotions=way.false,
            worse_ever=float(worse_week[way.name].mean()) if weeks_tell else None,
            worse_overall=float(worse[way.name].mean()),
        )
        for way in ways
    ]


def ratio(ours: pd.Series, theirs: pd.Series) -> tuple[float, float, float]:
    """By which share losses are larger, with its 95 % interval over customers."""
    mean, low, high = np.expm1(interval(np.log(ours / theirs).to_numpy()))
    return float(mean), float(low), float(high)


def table(set_name: str, customers: int, found: Sequence[WaySummary]) -> str:
    """It as a table of a page."""
    full = next((each.core_s for each in found if each.way == RETRAIN), None)
    lines = [
        f"| {set_name}, {customers} customers | loss against retrain | against better | core-s | of retrain "
        "| promotions | of these no better | worse by 2 % in a week | over all weeks |",
        "|---" * 9 + "|",
    ]
    for each in found:
        against = [_interval(each.loss_vs.get(name)) if name != each.way else "–" for name in (RETRAIN, BETTER)]
        share = f"{each.core_s / full:.0%}" if full else "–"
        false = "–" if each.false_promotions is None else str(each.false_promotions)
        ever = "–" if each.worse_ever is None else f"{each.worse_ever:.0%}"
        lines.append(
            f"| {each.way} | {against[0]} | {against[1]} | {each.core_s:.1f} | {share} | {each.promotions} | {false} "
            f"| {ever} | {each.worse_overall:.0%} |"
        )
    return "\n".join(lines)


def _interval(found: tuple[float, float, float] | None) -> str:
    return "–" if found is None else f"{found[0]:+.1%} ({found[1]:+.1%} to {found[2]:+.1%})"
