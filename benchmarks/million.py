"""A million trials of an objective that does nothing: what is left is all ours, and the memory must stay flat.

    python -m benchmarks.million                          50,000 customers × 20 trials
    python -m benchmarks.million --customers 2500         fewer

Random search, records on, one customer after the other from one keyed table. The last line is one JSON object.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.measure import run_watched
from benchmarks.process_tree import Usage


def no_op(config: dict[str, Any]) -> float:
    """The objective."""
    return float(config["x"])


def search(folder: str, customers: int, trials: int, cores: int) -> dict[str, Any]:
    """The search itself; what it took, by its own clock and records."""
    began = time.time()
    import pandas as pd

    from tuning import RunResult, TuneRunner
    from tuning.records.parts import TRIALS, accepted, of_kind

    table = pd.DataFrame({"customer": [f"c{number:06d}" for number in range(customers)], "value": 1.0})
    runner = TuneRunner(
        data=table,
        by="customer",
        objective=no_op,
        search_space={"parameters": {"x": {"type": "float", "low": 0.0, "high": 1.0}}},
        metric="score",
        algorithm="random",
        scheduler="fifo",
        trials=trials,
        slots=cores,
        placement="packed",
        mlflow=False,
    )
    result = runner.run(folder, progress=False)
    ended = time.time()
    result = RunResult(folder)
    studies = result.study_records
    return {
        "began": began,
        "first": min(record.started for record in studies),
        "ended": ended,
        "studies": len(studies),
        "trials": sum(record.trials for record in studies),
        "failed": sum(record.failed for record in studies),
        "recorded": _rows(folder, of_kind(accepted(result.directory, result.term), TRIALS)),
        "leaderboard_rows": len(result.leaderboard()),
    }


def _rows(folder: str, parts: list[str]) -> int:
    """Rows of the trial parts, from their footers."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(f"{folder}/{part}").num_rows for part in parts)


def flatness(usage: Usage, begin: float, end: float) -> dict[str, dict[str, float]]:
    """By process: MB resident in the second and in the last tenth of the time between two moments."""
    early, late = (
        usage.resident(begin + low * (end - begin), begin + (low + 0.1) * (end - begin)) for low in (0.1, 0.9)
    )
    return {
        role: {"early_mb": round(early.get(role, 0.0) / 1e6, 1), "late_mb": round(size / 1e6, 1)}
        for role, size in late.items()
    }


def measure(customers: int, trials: int, cores: int, parent: Path | None = None) -> dict[str, Any]:
    """Run the search in a process of its own and watch it."""
    with tempfile.TemporaryDirectory(prefix="million-", dir=parent) as folder:
        out = Path(folder, "out.json")
        words = ["-m", "benchmarks.million", "--customers", str(customers), "--trials", str(trials)]
        usage = run_watched([*words, "--cores", str(cores), "--work", folder], float("inf"))
        seen = json.loads(out.read_text())
        size = sum(path.stat().st_size for path in Path(folder, "run", "records").rglob("*") if path.is_file())
    count = seen["trials"]
    cpu = {role: 1000 * used / count for role, used in usage.cpu(seen["first"], seen["ended"]).items()}
    return {
        "customers": seen["studies"],
        "trials": count,
        "recorded": seen["recorded"],
        "failed": seen["failed"],
        "leaderboard_rows": seen["leaderboard_rows"],
        "seconds": round(seen["ended"] - seen["first"], 1),
        "startup_s": round(seen["first"] - seen["began"], 1),
        "wall_ms_per_trial": round(1000 * (seen["ended"] - seen["first"]) / count, 4),
        "core_ms_per_trial": round(sum(cpu.values()), 4),
        "core_ms_by_process": {role: round(value, 4) for role, value in cpu.items() if value > 0.001},
        "record_bytes_per_trial": round(size / count, 1),
        "memory": flatness(usage, seen["first"], seen["ended"]),
    }


@click.command()
@click.option("--customers", type=click.IntRange(2), default=50_000, show_default=True)
@click.option("--trials", type=click.IntRange(1), default=20, show_default=True)
@click.option("--cores", type=click.IntRange(1), default=2, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="For the run; default: a temporary one.")
@click.option("--work", hidden=True)
def main(customers: int, trials: int, cores: int, folder: Path | None, work: str | None) -> None:
    """Search, watch, and print what it took."""
    if work is not None:
        seen = search(f"{work}/run", customers, trials, cores)
        Path(work, "out.json").write_text(json.dumps(seen))
        return
    print(f"{customers} customers × {trials} trials", file=sys.stderr)
    print(json.dumps(measure(customers, trials, cores, folder)))


if __name__ == "__main__":
    main()
