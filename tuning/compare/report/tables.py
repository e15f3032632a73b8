"""The result as tables: a frame for notebooks, text for terminals."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tuning.basics.wording import amount
from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.notes import notes
from tuning.compare.analysis.pairs import Pair
from tuning.compare.analysis.recommendation import recommend
from tuning.compare.analysis.result import ComparisonResult


def summary(comparison: ComparisonResult) -> pd.DataFrame:
    """Return one row per method, best first.

    Columns:
        rank, regret: means at the end of the budget.
        area: mean regret over the whole budget.
        cost: seconds (else steps) to the end of the budget, geometric mean over tasks of the ratio to the reference.
        to_random: share of the budget at which mean regret reaches random search's final one (only with a method
            called `random…`).
        wins, ties, losses, difference (with low, high), p, verdict: against the reference.
        failed: tasks without result.
    """
    final, index = comparison.final, {name: i for i, name in enumerate(comparison.methods)}
    against = {pair.method: pair for pair in comparison.comparisons}
    reach = _reach(final)
    rows = []
    for name in comparison.order:
        pair = against.get(name)
        rows.append(
            {
                "method": name,
                "rank": comparison.ranks[index[name]],
                "regret": final.mean_regret[index[name], -1],
                "area": final.area[index[name]],
                "cost": _cost(comparison, pair),
                "to_random": np.nan if reach is None else reach[index[name]],
                **_against(pair),
                "failed": len(comparison.failures.tasks.get(name, ())),
            }
        )
    return pd.DataFrame(rows).set_index("method")


def _cost(comparison: ComparisonResult, pair: Pair | None) -> float:
    if comparison.blocks.cost is None:
        return np.nan
    if pair is None:
        return 1.0
    return pair.cost.value if pair.cost else np.nan


def _against(pair: Pair | None) -> dict[str, object]:
    if pair is None:
        columns = ("wins", "ties", "losses", "difference", "low", "high", "p")
        return {**dict.fromkeys(columns, np.nan), "verdict": "reference"}
    return {
        "wins": pair.counts.wins,
        "ties": pair.counts.ties,
        "losses": pair.counts.losses,
        "difference": pair.difference.value,
        "low": pair.difference.low,
        "high": pair.difference.high,
        "p": pair.p,
        "verdict": pair.verdict,
    }


def _reach(final: Anytime) -> np.ndarray | None:
    """Return per method the share of the budget at which it reaches random search's final regret; NaN: never."""
    random = next((i for i, name in enumerate(final.methods) if name.startswith("random")), None)
    if random is None:
        return None
    reached = final.mean_regret <= final.mean_regret[random, -1] + 1e-12
    first = reached.argmax(axis=1)
    return np.where(reached.any(axis=1), final.share[first], np.nan)


def text(comparison: ComparisonResult, width: int | None = None) -> str:
    """Return the report for a terminal: sentence, table, Friedman's test, notes. width: see `table_text`."""
    return "\n".join([recommend(comparison).sentence, "", table_text(comparison, width), "", *footnotes(comparison)])


#: What the table of a narrow window does without, in this order; files and pages have it.
SPARED = ("= random after", "cost", "rank", "better/same/worse")


def table_text(comparison: ComparisonResult, width: int | None = None) -> str:
    """Return the summary with few digits. width: characters of a line; None is no limit."""
    shown = readable(comparison)
    found = str(shown.to_string(index=False))
    for name in SPARED:
        if width is None or len(found.partition("\n")[0]) <= width:
            break
        shown = shown[[column for column in shown.columns if column.partition(" (")[0] != name]]
        found = str(shown.to_string(index=False))
    return found


def readable(comparison: ComparisonResult) -> pd.DataFrame:
    """Return the summary as text cells, without columns that hold nothing."""
    table = summary(comparison)
    shown = pd.DataFrame({"method": list(table.index)})
    shown["rank"] = [f"{value:.2f}" for value in table["rank"]]
    shown["regret"] = [f"{value:.4f}" for value in table["regret"]]
    if table["cost"].notna().any():
        shown[f"cost ({comparison.blocks.cost_axis})"] = [_percent(value) for value in table["cost"]]
    if table["to_random"].notna().any():
        shown["= random after"] = [_percent(value, "never") for value in table["to_random"]]
    counts = table[["wins", "ties", "losses"]].to_numpy(float).tolist()
    shown["better/same/worse"] = [
        "" if np.isnan(row[0]) else "/".join(f"{value:.0f}" for value in row) for row in counts
    ]
    shown["difference"] = [_interval(*row) for row in table[["difference", "low", "high"]].to_numpy(float).tolist()]
    shown["p (Holm)"] = ["" if np.isnan(value) else f"{value:.2g}" for value in table["p"]]
    shown["verdict"] = list(table["verdict"])
    if table["failed"].any():
        shown["failed on"] = [str(value) if value else "" for value in table["failed"]]
    return shown


def footnotes(comparison: ComparisonResult) -> list[str]:
    """Return how to read the table, Friedman's test, and the notes."""
    blocks, noun = comparison.blocks, comparison.noun
    lines = [
        amount(blocks.count, "seed" if blocks.unit == "seed" else noun)
        + (f" x {amount(comparison.seeds, 'seed')}" if blocks.unit != "seed" else f" of one {noun}")
        + f", judged at the end of the budget of {comparison.axis}; compared with {comparison.reference}"
        + (
            " (the baseline)."
            if comparison.baseline
            else " (the best by these figures, which may be luck, so p is corrected over all pairs)."
        ),
        f"Regret: 0 is the best score known for a {noun}, 1 a typical random configuration. "
        f"Same: the difference is within {comparison.pairs.margin:g} (95 % interval).",
    ]
    test = comparison.friedman
    if test is not None:
        how = "by permutation" if test.permuted else f"F = {test.f:.3g}"
        lines.append(f"Friedman: chi2 = {test.statistic:.3g} ({test.freedom} d.f.), p = {test.p:.2g} {how}.")
    return [*lines, *map(str, notes(comparison))]


def _percent(value: float, missing: str = "") -> str:
    return missing if np.isnan(value) else f"{value:.0%}"


def _interval(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:+.3f}" if np.isnan(low) else f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"
