"""The results of one tier, and the figures made from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from benchmarks.measure import Measured
from benchmarks.quality.judgement import interval

MLFLOW = "tuning.cli"  # what that process is called (`benchmarks.process_tree`)


@dataclass(frozen=True)
class Shares:
    """Shares of several rounds: their mean with its 95 % interval, which one round does not have."""

    mean: float
    low: float
    high: float
    rounds: int

    def rounded(self) -> dict[str, float | None]:
        """For JSON."""
        known = self.rounds > 1
        low, high = (round(self.low, 4), round(self.high, 4)) if known else (None, None)
        return {"mean": round(self.mean, 4), "low": low, "high": high, "rounds": self.rounds}

    def __str__(self) -> str:
        between = f" ({100 * self.low:.1f} to {100 * self.high:.1f} %)" if self.rounds > 1 else ""
        return f"{100 * self.mean:.1f} %{between} in {self.rounds} rounds"


def _shares(found: list[float]) -> Shares | None:
    return Shares(*interval(found), len(found)) if found else None


@dataclass
class TierResult:
    """One tier, one kind of search. pure: seconds per trial of the serial loops, where all fit the same. runs: by
    contender.

    split: a worker's core-milliseconds per customer by phase, of keyed tiers.
    """

    tier: str
    search: str
    cores: int
    customers: int
    trials: int
    pure: dict[str, float]
    runs: dict[str, list[Measured]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    split: dict[str, float] = field(default_factory=dict)

    def figure(self, contender: str, name: str) -> float | None:
        """The median over a contender's runs."""
        found = self.runs.get(contender)
        return None if not found else median(getattr(run, name) for run in found)

    def eta(self, contender: str, kind: str = "plain") -> float | None:
        """Pure fit seconds ÷ (cores × wall) in steady state; kind: see `benchmarks.fits`."""
        seconds = self.figure(contender, "seconds")
        return None if seconds is None or not self.pure else self.pure[kind] / (self.cores * seconds)

    def against(self, other: str, us: str = "ours") -> float | None:
        """How many times as long the other takes per trial."""
        ours, theirs = self.figure(us, "seconds"), self.figure(other, "seconds")
        return None if ours is None or theirs is None else theirs / ours

    def core_ms_per_customer(self, contender: str) -> float | None:
        """Core-milliseconds of all processes in steady state."""
        seconds = self.figure(contender, "core_seconds")
        return None if seconds is None else 1000 * seconds * self.trials

    def by_phase(self) -> dict[str, float]:
        """Where ours spends them: the worker's phases, and the process that copies records into MLflow."""
        found = [run.by_process.get(MLFLOW, 0.0) for run in self.runs.get("ours", [])]
        return {**self.split, "mlflow": 1000 * self.trials * median(found)} if self.split and found else {}

    def overhead(self) -> float | None:
        """Core-milliseconds per trial of everything but the fits, by our own families, and the sampler."""
        runs = self.runs.get("ours")
        if not runs or not self.pure:
            return None
        return median(
            1000 * (run.core_seconds - self.pure["own"] - float(run.details["suggest_seconds"]) / run.trials)
            for run in runs
        )

    def mlflow_share(self) -> Shares | None:
        """The part of ours' core-seconds that the process spends which copies records into MLflow."""
        return _shares([run.by_process.get(MLFLOW, 0.0) / run.core_seconds for run in self.runs.get("ours", [])])

    def mlflow_share_of_pairs(self) -> Shares | None:
        """What a run without MLflow saves of the core-seconds of the run beside it, whoever spends them there."""
        pairs = zip(self.runs.get("ours", []), self.runs.get("ours_without_mlflow", []), strict=False)
        return _shares([1.0 - without.core_seconds / run.core_seconds for run, without in pairs])

    def _pure_ms(self, kind: str) -> float | None:
        return 1000 * self.pure[kind] if self.pure else None

    def summary(self) -> dict[str, Any]:
        """The JSON object of the command line."""
        rounded = {
            "eta": self.eta("ours"),
            "eta_prepared": self.eta("ours", "prepared"),
            "eta_own": self.eta("ours", "own"),
            "overhead_core_ms": self.overhead(),
            "vs_tuner_per_customer": self.against("tuner_per_customer"),
            "vs_grid_tuner": self.against("grid_tuner"),
            "vs_ray_tasks": self.against("ray_tasks"),
            "vs_ray_tasks_64_bins": self.against("ray_tasks_64_bins", "ours_64_bins"),
            "vs_ray_tasks_own_defaults": self.against("ray_tasks", "ours_64_bins"),
            "vs_optuna_joblib": self.against("optuna_joblib"),
            "vs_sklearn": self.against("sklearn"),
            "vs_limit": self.against("limit"),
            "driver_mb_per_10k_trials": self.figure("ours", "mb_per_10k_trials"),
            "startup_s": self.figure("ours", "startup"),
            "finish_s": self.figure("ours", "finish"),
            "pure_fit_ms": self._pure_ms("plain"),
            "pure_fit_prepared_ms": self._pure_ms("prepared"),
            "pure_fit_own_ms": self._pure_ms("own"),
        }
        figures = {name: None if value is None else round(value, 4) for name, value in rounded.items()}
        return {
            "tier": self.tier,
            "search": self.search,
            "cores": self.cores,
            "customers": self.customers,
            "trials": self.trials,
            **figures,
            "mlflow_share": (share := self.mlflow_share()) and share.rounded(),
            "mlflow_share_of_pairs": (pairs := self.mlflow_share_of_pairs()) and pairs.rounded(),
            "core_ms_per_customer": {name: round(self.core_ms_per_customer(name) or 0, 2) for name in self.runs},
            "core_ms_by_phase": {phase: round(value, 2) for phase, value in self.by_phase().items()},
            "ms_per_trial": {name: round(1000 * (self.figure(name, "seconds") or 0), 3) for name in self.runs},
            "rounds": {name: len(runs) for name, runs in self.runs.items()},
            "skipped": self.skipped,
        }


def as_plain(results: list[TierResult]) -> list[dict[str, Any]]:
    """Results as JSON values, every run included."""
    return [{**asdict(result), "summary": result.summary()} for result in results]
