"""Which algorithm to use, and how sure that is, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tuning.compare.analysis.blocks import SEED
from tuning.compare.analysis.pairs import BETTER, SAME, WORSE, Pair
from tuning.compare.analysis.result import ComparisonResult

# A cheaper method is worth a change from here on.
WORTHWHILE_SAVING = 0.9


@dataclass(frozen=True)
class Recommendation:
    """Which algorithm to use.

    Attributes:
        algorithm: to use; None when the data cannot tell.
        decided: whether a test or an equivalence is behind it.
        sentence: the recommendation, for a reader.
        cost_ratio: its cost over that of the best-ranked method with the same score, where that is the reason.
    """

    algorithm: str | None
    decided: bool
    sentence: str
    cost_ratio: float | None = None


def recommend(comparison: ComparisonResult) -> Recommendation:
    """Return the recommendation from the tests, the intervals and the costs.

    The best-ranked method, unless one with the same score (the interval of the difference lies within the margin)
    is clearly cheaper. With a baseline, only a method that is significantly better replaces it. When nothing is
    significant and nothing is the same, no algorithm is named, and the power says what would settle it. None is named
    either when the A/A check failed, since tests, intervals and power are then all wrong.
    """
    found = _distrusted(comparison) or _recommend(comparison)
    return replace(found, sentence=_within_its_limits(comparison, found.sentence))


def _recommend(comparison: ComparisonResult) -> Recommendation:
    best = _best(comparison)
    against_best = [comparison.pairs.pair(name, best) for name in comparison.order if name != best]
    cheaper = [pair for pair in against_best if pair.verdict == SAME and _saves(pair)]
    cheaper = [pair for pair in cheaper if not _beaten(comparison, pair.method)]
    pick = min(cheaper, key=lambda pair: pair.cost.value if pair.cost else 1.0).method if cheaper else best
    others = [name for name in comparison.order if name != pick]
    saved = [pair for pair in (comparison.pairs.pair(pick, name) for name in others) if _saves(pair)]
    saved = [pair for pair in saved if pair.verdict == SAME]
    if saved or any(pair.verdict == WORSE for pair in against_best):
        beaten = {pair.reference for pair in saved}
        rest = [comparison.pairs.pair(name, pick) for name in others if name not in beaten]
        ratio = saved[0].cost.value if saved and saved[0].cost else None
        clauses = [*_savings(saved), *_rest(comparison, rest)]
        return Recommendation(pick, True, f"Use {pick}: {'; '.join(clauses)}.", ratio)
    if comparison.baseline is not None and comparison.baseline == best:
        rival = min(against_best, key=lambda pair: pair.difference.value)
        sentence = f"Stay with {best}: nothing is proven better{_power(comparison, rival, ' (', ')')}."
        return Recommendation(best, False, sentence)
    if all(pair.verdict == SAME for pair in against_best):
        names = _names([best, *(pair.method for pair in against_best)])
        sentence = f"It does not matter: {names} reach the same score, none at a clearly lower cost."
        return Recommendation(best, True, sentence)
    runner_up = against_best[0]
    sentence = f"The data cannot tell which is best{_power(comparison, runner_up)}."
    return Recommendation(None, False, sentence)


def _distrusted(comparison: ComparisonResult) -> Recommendation | None:
    check = comparison.null_check
    if check is None or check.passed:
        return None
    sentence = (
        "The data cannot tell which is best: the A/A check failed, so no p-value can be trusted (see the first note)."
    )
    return Recommendation(None, False, sentence)


def _best(comparison: ComparisonResult) -> str:
    """Return the best-ranked method that none is proven better than; with a baseline only one proven better."""
    candidates = list(comparison.order)
    if comparison.baseline is not None:
        proven = [pair.method for pair in comparison.comparisons if pair.verdict == BETTER]
        candidates = proven or [comparison.baseline]
    return next((name for name in candidates if not _beaten(comparison, name)), candidates[0])


def _beaten(comparison: ComparisonResult, name: str) -> bool:
    """Return whether any method is significantly better; ranks and the test may disagree."""
    return any(comparison.pairs.pair(other, name).verdict == BETTER for other in comparison.order if other != name)


def _savings(pairs: list[Pair]) -> list[str]:
    """Name the best-ranked method with the same score and the cost saved, and others that cost more too."""
    if not pairs or pairs[0].cost is None:
        return []
    first, *others = pairs
    more = f" (and as {_names([pair.reference for pair in others])}, which cost more too)" if others else ""
    return [f"same score as {first.reference} at {pairs[0].cost.value:.0%} of the cost{more}"]


def _rest(comparison: ComparisonResult, pairs: list[Pair]) -> list[str]:
    """Return clauses about the other methods, relative to the recommended one."""
    clauses = []
    for pair in pairs:
        if pair.verdict == WORSE:
            counts = pair.counts
            of = counts.wins + counts.ties + counts.losses
            clauses.append(f"{pair.method} is worse on {counts.losses} of {of} {_noun(comparison, of)} ({_p(pair.p)})")
    same = [pair.method for pair in pairs if pair.verdict == SAME]
    if same:
        clauses.append(f"{_names(same)} {'reaches' if len(same) == 1 else 'reach'} the same score for no less cost")
    unclear = [pair for pair in pairs if pair.verdict not in (WORSE, SAME, BETTER)]
    if unclear:
        names = _names([pair.method for pair in unclear])
        clauses.append(f"{names} cannot be told apart from it{_power(comparison, unclear[0], ' (', ')')}")
    return clauses


def _power(comparison: ComparisonResult, pair: Pair, before: str = ": ", after: str = "") -> str:
    return f"{before}{pair.power.sentence(_noun(comparison, pair.power.tasks))}{after}"


def _within_its_limits(comparison: ComparisonResult, sentence: str) -> str:
    """Put before the sentence what limits it: one task, or an unfinished run."""
    if comparison.blocks.unit == SEED:
        sentence = f"On this one {comparison.noun} only: {sentence[0].lower()}{sentence[1:]}"
    return sentence if comparison.unfinished is None else f"{comparison.unfinished.sentence()} {sentence}"


def _noun(comparison: ComparisonResult, count: int) -> str:
    noun = "seed" if comparison.blocks.unit == SEED else comparison.noun
    return noun if count == 1 else f"{noun}s"


def _saves(pair: Pair) -> bool:
    return pair.cost is not None and pair.cost.value <= WORTHWHILE_SAVING and not pair.cost.high >= 1


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
