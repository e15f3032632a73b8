"""Who is promoted: the decision on each comparison, with its figures and its reason in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuning.basics.wording import amount
from tuning.champions.comparison import RowComparison
from tuning.champions.discoveries import Discoveries, e_bh
from tuning.champions.evidence import Evidence
from tuning.champions.rules.rule import BEATEN, STANDS, PromotionFigures, PromotionRule
from tuning.champions.shrinkage import shrunken
from tuning.champions.sizes import size_of

# On which rows a champion and a challenger were compared.
NEW_ROWS, HOLD_OUT = "new rows", "hold-out"
# e-values are shown up to here; what is larger is as sure.
LARGEST_LOG = 700.0


@dataclass(frozen=True)
class Contest:
    """A champion and its challenger when decisions are made.

    fitted_rows: on which the champion was fitted, which is the customer's size.
    fault: what is wrong with the champion, in words, where it is replaced without a test: it is worse than a constant,
        cannot be loaded, or does not fit the columns of the data any more. None where nothing is.
    """

    customer: str
    comparison: RowComparison
    fitted_rows: int
    fault: str | None = None


@dataclass(frozen=True)
class Decision:
    """What was decided on one challenger; the fields are the columns of the table `decisions`, in their order.

    Attributes:
        customer: its id.
        champion_loss, challenger_loss: their means over `rows` rows, which both have predicted; None without rows, and
            for a metric whose hold-out score tells no loss of a row.
        e_value: of "the challenger is better"; None where nothing was tested.
        threshold: of e-BH: the e-value that is enough for this customer.
        gain: which share of the champion's loss the challenger saves, as measured.
        shrunken_gain: the same, held back towards the mean of all customers.
        rule: the rule's name.
        outcome: `promoted`, `proposed`, `beaten` or `stands`.
        reason: in words.
        compared_on: `new rows`, or `hold-out`: that of the search which has found the challenger, before there are new
            rows. Nothing is decided by that.
    """

    customer: str
    champion_loss: float | None
    challenger_loss: float | None
    rows: int
    e_value: float | None
    threshold: float | None
    gain: float | None
    shrunken_gain: float | None
    rule: str
    outcome: str
    reason: str
    compared_on: str = NEW_ROWS


@dataclass(frozen=True)
class Decisions:
    """Those of one refresh, in the order in which contests were given, and a sentence on the promoted together."""

    decisions: tuple[Decision, ...]
    said_of_all: str = ""


def decide(
    contests: Sequence[Contest],
    rule: PromotionRule,
    groups: Mapping[str, Evidence],
    false_discoveries: float = 0.1,
    earlier: Sequence[float] = (),
) -> Decisions:
    """The decisions on all contests.

    groups: by the name of a size (`tuning/champions/sizes.py`), the evidence that its challengers are better.
    false_discoveries: the share of the promoted that may be no better, and of the beaten that may be no worse.
    earlier: logarithms of e-values with which other challengers ended, promoted or not, in the weeks for which the
        promise is to hold together. They are counted, as e-BH may do with evidence that was stopped at any time.
    """
    tested = [contest for contest in contests if contest.fault is None]
    figures = figures_of(tested, groups, false_discoveries, earlier)
    chosen = rule.chosen(figures)
    against = e_bh(_log_e(tested, "worse"), false_discoveries)
    found = {
        contest.customer: _decision(contest, place, figures, rule, bool(chosen[place]), against)
        for place, contest in enumerate(tested)
    }
    found |= {contest.customer: _without_test(contest, rule, contest.fault) for contest in contests if contest.fault}
    ordered = tuple(found[contest.customer] for contest in contests)
    return Decisions(ordered, rule.said_of_all(figures, chosen))


def figures_of(
    contests: Sequence[Contest], groups: Mapping[str, Evidence], false_discoveries: float, earlier: Sequence[float] = ()
) -> PromotionFigures:
    """What rules look at; challengers need one `least_gain`."""
    comparisons = [contest.comparison for contest in contests]
    log_e = _log_e(contests, "better")
    metrics = [each.metric for each in comparisons]
    worse = np.array(
        [metric is not None and (not metric.rows or metric.challenger < metric.champion) for metric in metrics], bool
    )
    rows = np.array([each.rows for each in comparisons], int)
    gain = np.array([float(each.gain()) for each in comparisons])
    shrunk = shrunken(gain, np.array([float(each.gain_error()) for each in comparisons]), rows)
    least_gain = comparisons[0].least_gain if comparisons else 0.0
    sizes = size_of(np.array([contest.fitted_rows for contest in contests], int))
    return PromotionFigures(
        rows=rows,
        e_value=np.exp(np.minimum(log_e, LARGEST_LOG)),
        gain=gain,
        # A worse metric counts as no evidence at all, before e-BH: afterwards the share of false ones would rise.
        discoveries=_first(e_bh(np.append(np.where(worse, -np.inf, log_e), earlier), false_discoveries), len(contests)),
        metric_worse=worse,
        shrunken_gain=shrunk.gain,
        no_better=shrunk.no_better(least_gain),
        group=sizes,
        group_sure=np.isin(sizes, _sure_groups(groups, false_discoveries)),
        least_gain=least_gain,
    )


def _first(discoveries: Discoveries, count: int) -> Discoveries:
    return Discoveries(discoveries.chosen[:count], discoveries.needed[:count])


def _log_e(contests: Sequence[Contest], side: str) -> np.ndarray:
    return np.array([float(getattr(contest.comparison, side).log_e()) for contest in contests])


def _sure_groups(groups: Mapping[str, Evidence], false_discoveries: float) -> list[str]:
    found = e_bh(np.array([float(evidence.log_e()) for evidence in groups.values()]), false_discoveries)
    return [name for name, sure in zip(groups, found.chosen, strict=True) if sure]


def _decision(
    contest: Contest, place: int, figures: PromotionFigures, rule: PromotionRule, chosen: bool, against: Discoveries
) -> Decision:
    comparison = contest.comparison
    beaten = bool(against.chosen[place]) and not chosen
    reason = rule.reason(figures, place, chosen)
    if beaten:
        worse = float(np.exp(min(float(comparison.worse.log_e()), LARGEST_LOG)))
        reason = f"surely worse on {amount(comparison.rows, 'new row')}: e-value {worse:,.4g} the other way"
    rows = comparison.rows
    return Decision(
        customer=contest.customer,
        champion_loss=float(comparison.champion) / rows if rows else None,
        challenger_loss=float(comparison.challenger) / rows if rows else None,
        rows=rows,
        e_value=float(figures.e_value[place]),
        threshold=float(figures.discoveries.needed[place]),
        gain=float(figures.gain[place]) if np.isfinite(figures.gain[place]) else None,
        shrunken_gain=float(figures.shrunken_gain[place]),
        rule=rule.name,
        outcome=BEATEN if beaten else rule.outcome if chosen else STANDS,
        reason=reason,
    )


def _without_test(contest: Contest, rule: PromotionRule, fault: str) -> Decision:
    rows = contest.comparison.rows
    return Decision(contest.customer, None, None, rows, None, None, None, None, rule.name, rule.of_faulty, fault)
