"""What each search algorithm costs per trial, and what it finds: `python -m benchmarks.search_cost`.

Cost: one `suggest` and one `on_trial_complete`, in core-milliseconds of this process (all its threads), averaged
over a study of `--trials` trials, on a quadratic in two dimensions and on the preset tabular-regression (7 families,
26 parameters). Worth: the median, over `--seeds` studies, of the best loss on the quadratic, in how many of them it
beat random search with the same seed, and the p-value of Wilcoxon's paired test for "better than random" (one-sided,
uncorrected). Algorithms whose libraries are not installed are named at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import click
from scipy import stats

from search_spaces import Float, SearchSpace, SpaceError, algorithms, presets

VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in algorithms.names() if name != "grid"},
    "optuna-v4": {"name": "optuna", "profile": "v4"},
    "optuna-gp": {"name": "optuna", "sampler": "gp"},
    "optuna-cmaes": {"name": "optuna", "sampler": "cmaes"},
}
LIBRARIES = [
    "ray",
    "optuna",
    "hyperopt",
    "hpbandster",
    "ConfigSpace",
    "scipy",
    "numpy",
    "torch",
    "botorch",
    "cmaes",
    "ax-platform",
    "bayesian-optimization",
    "nevergrad",
    "flaml",
    "HEBO",
    "zoopt",
]
QUADRATIC = SearchSpace([Float("x", -5, 5), Float("y", -5, 5)])


def quadratic(config: Mapping[str, Any]) -> float:
    return float((config["x"] - 1) ** 2 + (config["y"] + 2) ** 2)


def tabular(config: Mapping[str, Any]) -> float:
    """Something that depends on every number, so that models have work to do."""
    numbers = [value for value in config.values() if isinstance(value, int | float)]
    return sum(abs(value - 0.3) for value in numbers) / len(numbers)


def study(
    spec: Any, space: SearchSpace, objective: Callable[[Mapping[str, Any]], float], seed: int, trials: int
) -> tuple[float, float]:
    """Best loss, and milliseconds per trial in the searcher."""
    spent, best = 0.0, float("inf")
    searcher = spec.build(space, metric="loss", mode="min", seed=seed, trials=trials)
    for number in range(trials):
        start = time.process_time()
        config = searcher.suggest(str(number))
        spent += time.process_time() - start
        loss = objective(config)
        best = min(best, loss)
        start = time.process_time()
        searcher.on_trial_complete(str(number), {"loss": loss, "training_iteration": 1})
        spent += time.process_time() - start
    return best, spent / trials * 1e3


@click.command(help=__doc__)
@click.option("--algorithms", "chosen", default=",".join(VARIANTS), help="Names, separated by commas.")
@click.option("--trials", default=40, show_default=True, help="Trials of a study.")
@click.option("--seeds", default=20, show_default=True, help="Studies per algorithm.")
def main(chosen: str, trials: int, seeds: int) -> None:
    space = presets.load("tabular-regression", task="regression")
    chance = [study(algorithms.parse("random"), QUADRATIC, quadratic, seed, trials)[0] for seed in range(seeds)]
    missing = []
    print(f"{'algorithm':14} {'ms, quadratic':>14} {'ms, tabular':>12} {'best loss':>10} {'beats random':>13} {'p':>9}")
    for name in chosen.split(","):
        spec = algorithms.parse(VARIANTS.get(name, {"name": name}))
        try:
            spec.check(space)
        except SpaceError as error:
            missing.append(f"{name}: {error}")
            continue
        study(spec, QUADRATIC, quadratic, 0, min(trials, 12))  # imports and first fits are not a trial's cost
        runs = [study(spec, QUADRATIC, quadratic, seed, trials) for seed in range(seeds)]
        cost = median(milliseconds for _, milliseconds in runs)
        wide = median(study(spec, space, tabular, seed, trials)[1] for seed in range(min(seeds, 3)))
        differences = [found - other for (found, _), other in zip(runs, chance, strict=True)]
        wins = sum(difference < 0 for difference in differences)
        p = stats.wilcoxon(differences, alternative="less").pvalue if any(differences) else 1.0
        best = median(best for best, _ in runs)
        print(f"{name:14} {cost:14.3f} {wide:12.3f} {best:10.4f} {wins:>7} of {seeds:>2} {p:9.2g}", flush=True)
    for line in missing:
        print(f"not here: {line}")
    print("with", ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name))))


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
