"""A run in figures: what `RunResult.summary` counts, and `tuning run --output json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount, value_text
from tuning.definition.baselines import baseline_name
from tuning.notes import FitCode
from tuning.records.gains import gain_over
from tuning.records.schema import OK, POOLED, TrialRecord
from tuning.records.tables import has_note
from tuning.runs.plan_file import PlannedNames
from tuning.runs.standings import Standings
from tuning.runs.verdicts import JUDGED, ToUse, is_constant, too_few

#: What the typical customer is known by.
ANSWERED = ["test_score", "cv_score", "constant_test_score", "gain", "gain_over_constant"]
#: What is needed of customers' best studies.
_OWN = (
    *("customer", "cv_error", "rows", "without_target", "family", "ensemble", "notes", "model_bytes"),
    *("own_score", "pool_score"),
)
COUNTED = list(dict.fromkeys((*_OWN, *ANSWERED, *JUDGED)))


class Typical(TypedDict):
    """Customers' medians; None where nothing is known.

    test_score to gain_over_constant: on the hold-out rows. gain_low, gain_high: an interval of the median gain that
    holds it at least 19 times of 20 (`scipy.stats.quantile_test`); from 6 customers on.
    """

    cv_score: float | None
    test_score: float | None
    constant_test_score: float | None
    gain_over_constant: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None


class RunCounts(TypedDict):
    """Customers are counted once, whatever the number of their studies.

    pooled: customers without a model of their own, for whom the run's pool answers; the others without one are
    `without_model`. baseline: what it is, in words. verdicts: customers by `ToUse`. few_hold_out_rows: of the undecided
    those with too few hold-out rows. model_bytes: of the winners' models in all. fixed: models whose configuration
    was known, so that no trial was run. constants: models that are one. contradicted: models that are much worse on the
    hold-out rows than the folds promised, and not by chance. pool_members: models that have the pool as a member.
    pool_customers: whose rows it was trained on. pool_better, pool_compared: for how many customers
    the pool alone scores better on the hold-out than their own models, of how many; pool_gain: by how much in the
    median, as `gain`. without_pool: why there is none, where one was wanted: a note in plain
    values. without_target: rows that are left out for lack of one. fit_seconds: CPU seconds of all trials, last fits
    and the pool.
    """

    run: str
    run_dir: str
    customers: int
    succeeded: int
    pooled: int
    pool_members: int
    pool_customers: int
    pool_better: int
    pool_compared: int
    pool_gain: float | None
    without_pool: dict[str, object] | None
    without_model: int
    baseline: str
    verdicts: dict[str, int]
    few_hold_out_rows: int
    ensembles: int
    model_bytes: int
    fixed: int
    constants: int
    contradicted: int
    typical: Typical
    without_target: int
    trials: int
    wall_seconds: float
    fit_seconds: float


def run_counts(
    plan: PlannedNames,
    run_dir: str,
    standings: Standings,
    *,
    trials: int,
    wall_seconds: float,
    fit_seconds: float,
    pool: Sequence[TrialRecord] = (),
) -> RunCounts:
    """Return the figures. standings: of all customers. pool: the run's pool as a trial, if it has one."""
    customers, best, verdicts = len(standings.customers), standings.best_studies(COUNTED), standings.best_verdicts
    ok, constant, fixed = pc.equal(best["status"], OK), is_constant(best), pc.equal(best["trials"], 0)
    ensemble, succeeded, pooled = best["ensemble"].is_valid(), _count(ok), _count(pc.equal(best["family"], POOLED))
    undecided = pc.equal(verdicts, ToUse.UNDECIDED)
    return {
        "run": plan.run,
        "run_dir": run_dir,
        "customers": customers,
        "succeeded": succeeded,
        "pooled": pooled,
        "pool_members": _count(pc.match_substring_regex(best["ensemble"], f'"family": "{POOLED}(_linear)?"')),
        "pool_customers": sum(int(trial.metrics["customers"]) for trial in pool),
        **_against_the_pool(best, plan.metric, plan.mode),
        "without_pool": pool[0].reason.to_dict() if pool and pool[0].reason else None,
        "without_model": customers - succeeded - pooled,
        "baseline": baseline_name(plan.baseline),
        "verdicts": {each: _count(pc.equal(verdicts, each)) for each in ToUse},
        "few_hold_out_rows": _count(pc.and_(undecided, pa.array(too_few(best)))),
        "ensembles": _count(ensemble),
        "model_bytes": pc.sum(best["model_bytes"], min_count=0).as_py(),
        "fixed": _count(pc.and_(ok, fixed)),
        "constants": _count(pc.and_(ok, constant)),
        "contradicted": _count(has_note(best["notes"], FitCode.CONTRADICTED)),
        "typical": typical_of(best),
        "without_target": _count(best["without_target"]),
        "trials": trials,
        "wall_seconds": round(wall_seconds, 3),
        "fit_seconds": round(fit_seconds + sum(trial.fit_seconds for trial in pool), 3),
    }


def models_text(counts: RunCounts, of_objective: bool) -> str:
    """Return how many customers have a model, how many studies of an objective a winner, or an experiment's best."""
    if of_objective and counts["customers"] == 1:
        best = value_text(counts["typical"]["cv_score"])
        return f"experiment with the best value {best}" if best else "experiment without a winner"
    noun, what = ("study", "winner") if of_objective else ("customer", "model")
    has, own = ("has", " of its own") if counts["succeeded"] == 1 else ("have", " of their own")
    whose = own if counts["pooled"] else ""
    return f"{counts['succeeded']:,} of {amount(counts['customers'], noun)} {has} a {what}{whose}"


class AgainstPool(TypedDict):
    """As of `RunCounts`."""

    pool_better: int
    pool_compared: int
    pool_gain: float | None


def _against_the_pool(best: pa.Table, metric: str, mode: str) -> AgainstPool:
    """Return how the pool alone compares with customers' own models on the hold-out."""
    asked = best.select(["own_score", "pool_score"]).drop_null()  # a million customers without a pool are not looked at
    pairs = zip(*(column.to_pylist() for column in asked.columns), strict=True)
    gains = [gain_over(own, pool, metric, mode) for own, pool in pairs]
    known = [gain for gain in gains if gain is not None]
    better, median = sum(gain > 0 for gain in known), _finite(np.median(known)) if known else None
    return {"pool_better": better, "pool_compared": len(known), "pool_gain": median}


def _count(values: pa.ChunkedArray) -> int:
    """Return how many are true, or the sum of numbers."""
    return int(pc.sum(values, min_count=0).as_py())


def typical_of(best: pa.Table) -> Typical:
    """Return the medians. best: records of the best studies of customers with a model, with the columns `ANSWERED`."""
    values = {name: np.array(best[name].drop_null().to_pylist(), dtype=float) for name in ANSWERED}
    known = {name: column[~np.isnan(column)] for name, column in values.items()}
    medians = {name: _finite(np.median(column)) if len(column) else None for name, column in known.items()}
    low = high = None
    if len(known["gain"]):
        from scipy.stats import quantile_test  # takes a second, and an objective has no gains

        low, high = map(_finite, quantile_test(known["gain"]).confidence_interval())
    return cast("Typical", {**medians, "gain_low": low, "gain_high": high})


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
