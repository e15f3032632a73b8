"""What each search algorithm costs per trial, and what it finds: `python -m benchmarks.search_cost`.

Cost: one `suggest` and one `on_trial_complete`, in core-milliseconds of this process (one thread in the numerical
libraries), averaged over a study of `--trials` trials, on a quadratic in two dimensions and on the preset
tabular-regression (7 families, 26 parameters). Worth: the median, over `--seeds` studies, of the best loss on the
quadratic, in how many of them it beat random search with the same seed, and the p-value of Wilcoxon's paired test for
"better than random" (one-sided, uncorrected). An algorithm has `--seconds` core-seconds per space: it begins no study
that they do not suffice for, and ends its first one early where that one takes more; the last column says what it ran.
A cost over fewer trials is too low for models whose fits grow with the trials. Algorithms whose libraries are not
installed are named at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

import click
from scipy import stats
from threadpoolctl import threadpool_limits

from search_spaces import Float, SearchSpace, SpaceError, algorithms, presets
from tuning.basics.environment import installed_version

VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in algorithms.names() if name != "grid"},
    "optuna-v4": {"name": "optuna", "profile": "v4"},
    "optuna-gp": {"name": "optuna", "sampler": "gp"},
    "optuna-cmaes": {"name": "optuna", "sampler": "cmaes"},
    "bohb-0.1": {"name": "bohb", "min_bandwidth": 0.1},
}
LIBRARIES = [
    "ray", "optuna", "hyperopt", "hpbandster", "ConfigSpace", "scipy", "numpy", "torch", "botorch", "cmaes",
    "ax-platform", "bayesian-optimization", "nevergrad", "flaml", "HEBO", "zoopt",
]  # fmt: skip
QUADRATIC = SearchSpace([Float("x", -5, 5), Float("y", -5, 5)])


def quadratic(config: Mapping[str, Any]) -> float:
    return float((config["x"] - 1) ** 2 + (config["y"] + 2) ** 2)


def tabular(config: Mapping[str, Any]) -> float:
    """Something that depends on every number, so that models have work to do."""
    numbers = [value for value in config.values() if isinstance(value, int | float)]
    return sum(abs(value - 0.3) for value in numbers) / len(numbers)


class Run(NamedTuple):
    """One study: the best loss, the trials it made, and the core-seconds that the searcher took for them."""

    best: float
    trials: int
    spent: float


def study(
    spec: Any,
    space: SearchSpace,
    objective: Callable[[Mapping[str, Any]], float],
    seed: int,
    trials: int,
    seconds: float = float("inf"),
) -> Run:
    """A study that ends after its trials, or when the searcher has used its core-seconds."""
    spent, best = 0.0, float("inf")
    searcher = spec.build(space, metric="loss", mode="min", seed=seed, n_trials=trials)
    for number in range(trials):
        start = time.process_time()
        config = searcher.suggest(str(number))
        spent += time.process_time() - start
        loss = objective(config)
        best = min(best, loss)
        start = time.process_time()
        searcher.on_trial_complete(str(number), {"loss": loss, "training_iteration": 1})
        spent += time.process_time() - start
        if spent >= seconds:
            return Run(best, number + 1, spent)
    return Run(best, trials, spent)


def studies(
    spec: Any,
    space: SearchSpace,
    objective: Callable[[Mapping[str, Any]], float],
    seeds: int,
    trials: int,
    seconds: float,
) -> list[Run]:
    """A study per seed, as many as the core-seconds allow; only the first may end early."""
    runs = [study(spec, space, objective, 0, trials, seconds)]
    for seed in range(1, seeds):
        if sum(run.spent for run in runs) + runs[-1].spent > seconds:
            break
        runs.append(study(spec, space, objective, seed, trials))
    return runs


def cost(runs: list[Run]) -> float:
    """Core-milliseconds per trial: the median of the studies."""
    return median(run.spent / run.trials for run in runs) * 1e3


def extent(runs: list[Run], trials: int) -> str:
    """`20`, or `1 (17 trials)` for a study that ended early."""
    return str(len(runs)) if runs[0].trials == trials else f"1 ({runs[0].trials} trials)"


@click.command(help=__doc__)
@click.option("--algorithms", "chosen", default=",".join(VARIANTS), help="Names, separated by commas.")
@click.option("--trials", default=40, show_default=True, help="Trials of a study.")
@click.option("--seeds", default=20, show_default=True, help="Studies per algorithm.")
@click.option("--seconds", default=60.0, show_default=True, help="Core-seconds per algorithm and space.")
def main(chosen: str, trials: int, seeds: int, seconds: float) -> None:
    space = presets.load("tabular-regression", task="regression")
    chance = [study(algorithms.parse("random"), QUADRATIC, quadratic, seed, trials).best for seed in range(seeds)]
    missing = []
    print(
        f"{'algorithm':14} {'ms, quadratic':>14} {'ms, tabular':>12} {'best loss':>10} {'beats random':>13} {'p':>9}  "
        "studies of each"
    )
    for name in chosen.split(","):
        spec = algorithms.parse(VARIANTS.get(name, {"name": name}))
        try:
            spec.check(space)
        except SpaceError as error:
            missing.append(f"{name}: {error}")
            continue
        # Imports and first fits are not a trial's cost; they may also bring thread pools, which are limited afterwards.
        study(spec, QUADRATIC, quadratic, 0, min(trials, 12), seconds)
        with threadpool_limits(1):
            runs = studies(spec, QUADRATIC, quadratic, seeds, trials, seconds)
            wide = studies(spec, space, tabular, min(seeds, 3), trials, seconds)
        differences = [run.best - other for run, other in zip(runs, chance, strict=False)]
        wins = sum(difference < 0 for difference in differences)
        p = stats.wilcoxon(differences, alternative="less").pvalue if any(differences) else 1.0
        best = median(run.best for run in runs)
        print(
            f"{name:14} {cost(runs):14.3f} {cost(wide):12.3f} {best:10.4g} {wins:>7} of {len(runs):>2} {p:9.2g}  "
            f"{extent(runs, trials)}, {extent(wide, trials)}",
            flush=True,
        )
    for line in missing:
        print(f"not here: {line}")
    print("with", ", ".join(f"{name} {found}" for name in LIBRARIES if (found := installed_version(name))))


if __name__ == "__main__":
    main()
