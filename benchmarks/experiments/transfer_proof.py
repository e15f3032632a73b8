"""What `transfer` gains and costs: the customers that learned from others, and the same ones searched without it.

    python -m benchmarks.experiments.transfer_proof [--customers 90] [--out runs/transfer]

A generated fleet of similar customers of 60 to 160 rows is searched twice in one process, with `transfer` on and off,
with 20 trials. The followers of the first run are compared with the same customers in the second, on hold-out rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from tuning import RunResult, TuneRunner
from tuning.records.schema import StudyRecord
from tuning.study.study import FOLLOWER

MODELS = ("ridge", "random_forest", "extra_trees", "xgboost", "knn", "svm")
COLUMNS = list("abcdef")


def fleet(count: int, seed: int = 1) -> dict[str, pd.DataFrame]:
    """Customers whose targets follow the same bent plane, each with weights a bit of its own."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=len(COLUMNS))
    found = {}
    for number in range(count):
        rows = int(rng.integers(60, 160))
        x = rng.normal(size=(rows, len(COLUMNS)))
        plane = x @ (common + 0.5 * rng.normal(size=len(COLUMNS)))
        bend = np.where(x[:, 0] > 0, 2 * x[:, 1], -x[:, 2])
        noise = 0.5 * rng.normal(size=rows)
        found[f"c{number:03d}"] = pd.DataFrame(x, columns=COLUMNS).assign(y=plane + bend + noise)
    return found


def searched(data: dict[str, pd.DataFrame], transfer: str, out: Path) -> RunResult:
    """One run over the fleet."""
    runner = TuneRunner(
        data=data, target="y", task="regression", models=MODELS, transfer=transfer, save_models=False, mlflow=False
    )
    return runner.run(out / transfer, progress=False, in_process=True)


def main() -> None:
    """Search twice and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--customers", type=int, default=90)
    parser.add_argument("--out", type=Path, default=Path("runs/transfer"))
    given = parser.parse_args()
    data = fleet(given.customers)
    on, off = (searched(data, transfer, given.out) for transfer in ("on", "off"))
    if on.transfer_gain is not None:
        print(on.transfer_gain.sentence)
    without = {record.study: record for record in off.study_records}
    pairs = [(record, without[record.study]) for record in on.study_records if record.group == FOLLOWER]
    shares = np.array([_better(*pair) for pair in pairs])
    print(
        f"{len(pairs)} followers against themselves without it: median {100 * np.median(shares):+.1f} % on the "
        f"hold-out, better {np.sum(shares > 0)}, worse {np.sum(shares < 0)}, Wilcoxon p {wilcoxon(shares).pvalue:.1g}, "
        f"{sum(one.fit_seconds for one, _ in pairs) / sum(other.fit_seconds for _, other in pairs):.0%} of the CPU"
    )


def _better(one: StudyRecord, other: StudyRecord) -> float:
    assert one.test_score is not None
    assert other.test_score is not None
    return (one.test_score - other.test_score) / abs(other.test_score)


if __name__ == "__main__":
    main()
