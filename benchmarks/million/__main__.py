"""One million customers on this machine, with everything on: records, models, MLflow.

    python -m benchmarks.million --customers 1000000 --kill --folder DIR --output json     an hour or more
    python -m benchmarks.million --customers 3000 --kill                                   a minute or two

Plans, searches, kills the driver's process group at a random moment and resumes (`--kill`), prints the leaderboard,
loads models, and counts what is recorded. The last line is one JSON object (`--output json`); the figures so far are in
`figures.json` of the folder after each step. The exit code is 1 when something is lost, when something is there twice,
and when a step has failed.

core_ms_per_customer: CPU time of all processes from the start to the end, of both drivers where one was killed.
driver_mb: the most that the driver's own process had resident; driver_mb_by_tenth: means, from its first record to its
last, of the driver that worked longer. resume_s: from `tuning resume` to its first new record, Ray's start included.
model_ms: of a reader that has loaded another model, median. mlflow_bytes_per_customer: the whole database.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from benchmarks.million.alone import alone, stamp
from benchmarks.million.checks import disk_by_folder, leaderboard, on_disk, parts_of, recorded, tracked
from benchmarks.million.drive import Driver, check_end, search
from benchmarks.million.job import DEFINITION, RUN, write_job

# What a million customers may take on two cores.
MOST = {
    "seconds": 90 * 60,
    "driver_mb": 1500,
    "files": 20_000,
    "plan_s": 20,
    "plan_mb": 800,
    "leaderboard_s": 20,
    "leaderboard_mb": 1000,
    "model_ms": 50,
    "resume_s": 60,
    "mlflow_bytes_per_customer": 3000,
}
OFTEN = 50_000  # customers; from there on MLflow gets the best trial of each


class Million:
    """The steps, each of which adds its figures; one that fails is told, and the others go on."""

    def __init__(self, work: Path, customers: int, trials: int, slots: int, seed: int) -> None:
        self.work, self.run = work, work / RUN
        self.customers, self.trials, self.slots, self.seed = customers, trials, slots, seed
        self.figures: dict[str, Any] = {"customers": customers, "trials": trials, "slots": slots}
        self.failed: dict[str, str] = {}
        self.drivers: list[Driver] = []

    def step(self, name: str, action: Callable[[], dict[str, Any]]) -> None:
        """Take a step and keep its figures, in a file too."""
        print(f"{stamp()} {name}", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            self.figures |= action()
        except Exception as error:  # an hour of figures must not go with one of them
            self.failed[name] = f"{type(error).__name__}: {error}"
            print(f"{stamp()} {name} failed: {self.failed[name]}", file=sys.stderr, flush=True)
        print(f"{stamp()} {name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        (self.work / "figures.json").write_text(json.dumps(self.figures | {"failed": self.failed}, indent=1))

    def write(self) -> dict[str, Any]:
        write_job(self.work, self.customers, self.trials, self.slots)
        return {}

    def plan(self) -> dict[str, Any]:
        took = alone(self.work / "plan.json", "tuning.cli", "plan", str(self.work / DEFINITION), "--output", "json")
        return {"plan_s": took.seconds, "plan_core_s": took.core_seconds, "plan_mb": took.mb}

    def search(self, kill: bool) -> dict[str, Any]:
        words = ["run", str(self.work / DEFINITION), "--run-dir", str(self.run), "--output", "json"]
        found: dict[str, Any] = {}
        self.before: set[str] = set()
        if kill:
            enough = max(1, int(self.customers * random.Random(self.seed).uniform(0.1, 0.9)))
            first = search(self.work, words, self.customers, enough)
            self.drivers.append(first)
            self.before = parts_of(self.run)
            found = {"killed_after_customers": enough, "parts_before_kill": len(self.before)}
            words = ["resume", str(self.run), "--output", "json"]
        self.drivers.append(search(self.work, words, self.customers))
        if kill and self.drivers[1].first:  # else nothing was left
            found["resume_s"] = self.drivers[1].first - self.drivers[1].began
        self.figures |= found | self._took()  # also of a run that failed
        check_end(self.work, self.drivers[-1])
        return {}

    def _took(self) -> dict[str, Any]:
        core: dict[str, float] = {}
        for driver in self.drivers:
            for role, seconds in driver.core_seconds.items():
                core[role] = core.get(role, 0.0) + 1000 * seconds / self.customers
        longest = max(self.drivers, key=lambda driver: driver.last - driver.first)
        tenths = longest.tenths
        return {
            "seconds": sum(driver.ended - driver.began for driver in self.drivers),
            "startup_s": self.drivers[0].first - self.drivers[0].began,
            "finish_s": self.drivers[-1].ended - self.drivers[-1].last,
            "core_ms_per_customer": sum(core.values()),
            "core_ms_by_process": {role: round(each, 4) for role, each in core.items() if each >= 0.001},
            "driver_mb": max(driver.most_mb for driver in self.drivers),
            "driver_mb_by_tenth": tenths,
            "driver_mb_half": tenths[5],
            "driver_mb_late": tenths[9],
        }

    def check(self) -> dict[str, Any]:
        found = recorded(self.run, self.customers, self.trials, self.before)
        return {
            "recorded_studies": found.studies,
            "recorded_trials": found.trials,
            "lost": found.lost,
            "twice": found.twice,
            "forgotten_parts": found.forgotten,
            "damaged_parts": found.damaged,
        }

    def leaderboard(self) -> dict[str, Any]:
        words = ("tuning.cli", "leaderboard", str(self.run), "--output", "csv")
        took = alone(self.work / "leaderboard.csv", *words)
        rows, customers, fine = leaderboard(took.output)
        return {
            "leaderboard_s": took.seconds,
            "leaderboard_core_s": took.core_seconds,
            "leaderboard_mb": took.mb,
            "leaderboard_rows": rows,
            "leaderboard_customers": customers,
            "with_model": fine,
        }

    def models(self) -> dict[str, Any]:
        words = ("benchmarks.million.reader", str(self.run), str(self.customers), str(self.seed))
        took = alone(self.work / "models.json", *words)
        figures = json.loads(took.output.read_text())
        return {
            "model_ms": figures["median_ms"],
            "model_ms_most": figures["most_ms"],
            "first_model_s": figures["first_s"],
            "models_mb": took.mb,
        }

    def mlflow(self) -> dict[str, Any]:
        """Count the copy; complete it where the end of the run did not wait for it."""
        found = tracked(self.run / "mlflow.db")
        missing = self._missing(found.runs)
        took: dict[str, Any] = {"mlflow_missing_at_end": missing}
        if missing:
            sync = alone(self.work / "sync.json", "tuning.cli", "mlflow", "sync", str(self.run))
            found = tracked(self.run / "mlflow.db")
            took |= {"mlflow_sync_s": sync.seconds, "mlflow_sync_mb": sync.mb}
        return {
            **took,
            "mlflow_missing": self._missing(found.runs),
            "mlflow_runs": found.runs,
            "mlflow_bytes_per_customer": found.size / self.customers,
            "mlflow_bytes_by_table": {name: round(size / self.customers, 1) for name, size in found.by_table.items()},
        }

    def _missing(self, runs: dict[str, int]) -> int:
        of_each = 1 if self.customers > OFTEN else self.trials
        return self.customers * (1 + of_each) - runs.get("study", 0) - runs["trial"]

    def disk(self) -> dict[str, Any]:
        files, mb = on_disk(self.run)
        by_folder = {name or "files": list(found) for name, found in disk_by_folder(self.run).items()}
        return {"files": files, "disk_mb": mb, "disk_by_folder": by_folder}

    @property
    def wrong(self) -> list[str]:
        """What is lost, there twice, or could not be measured."""
        whole = {"leaderboard_rows": self.customers, "leaderboard_customers": self.customers}
        none = ("lost", "twice", "forgotten_parts", "damaged_parts", "mlflow_missing")
        expected = {**whole, **dict.fromkeys(none, 0)}
        odd = [f"{name} is {self.figures.get(name)}" for name, n in expected.items() if self.figures.get(name) != n]
        return [*odd, *(f"{name} failed" for name in self.failed)]

    def summary(self) -> dict[str, Any]:
        """All figures, rounded; of a million customers also what takes more than it may."""
        missed = [name for name, most in MOST.items() if not self.figures.get(name, float("inf")) <= most]
        shown = {name: _round(value) for name, value in self.figures.items()}
        return shown | {"wrong": self.wrong} | ({"missed": missed} if self.customers >= 1_000_000 else {})


def _round(value: object) -> object:
    if isinstance(value, dict):
        return {name: _round(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_round(each) for each in value]
    return round(value, 3) if isinstance(value, float) else value


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder that was asked for, which stays, or one that goes."""
    if given is None:
        with tempfile.TemporaryDirectory(prefix="million-") as name:
            yield Path(name)
        return
    given.mkdir(parents=True, exist_ok=True)
    if any(given.iterdir()):
        raise click.UsageError(f"--folder: {given} is not empty.")
    yield given


@click.command()
@click.option("--customers", type=click.IntRange(10), default=3_000, show_default=True)
@click.option("--trials", type=click.IntRange(1), default=3, show_default=True)
@click.option("--slots", type=click.IntRange(1), default=2, show_default=True)
@click.option("--kill", is_flag=True, help="Kill the driver's process group at a random moment, and resume.")
@click.option("--seed", default=0, show_default=True, help="Of that moment, and of the models that are loaded.")
@click.option("--folder", type=click.Path(path_type=Path), help="Keep all of it here; an empty folder.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(customers: int, trials: int, slots: int, kill: bool, seed: int, folder: Path | None, output: str) -> None:
    """Tune a million customers, and say what it took."""
    with _folder(folder) as work:
        job = Million(work.resolve(), customers, trials, slots, seed)
        job.step("write the table", job.write)
        job.step("plan", job.plan)
        job.step("search", lambda: job.search(kill))
        job.step("check the records", job.check)
        job.step("leaderboard", job.leaderboard)
        job.step("models", job.models)
        job.step("mlflow", job.mlflow)
        job.step("disk", job.disk)
        summary = job.summary()
        if output == "json":
            print(json.dumps(summary))
        else:
            for name, value in summary.items():
                print(f"{name:28} {value}")
        if job.wrong:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
