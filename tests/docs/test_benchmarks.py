"""The harness behind every performance figure: the same work for all, steady state as it is defined, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from benchmarks import anatomy, plain
from benchmarks.contenders.outcome import Outcome, all_warm
from benchmarks.measure import Measured, TooShortError, figures
from benchmarks.process_tree import Usage
from benchmarks.results import TierResult
from benchmarks.workload import BINS, FIXED, OUR_BINS, OWN, TIERS, Scenario, definition, make_workload
from tuning import TuneRunner

# What a reader of the JSON line relies on.
FIGURES = (
    "eta",
    "eta_prepared",
    "overhead_core_ms",
    "vs_tuner_per_customer",
    "vs_grid_tuner",
    "vs_ray_tasks",
    "vs_ray_tasks_64_bins",
    "vs_ray_tasks_own_defaults",
    "vs_optuna_joblib",
    "vs_sklearn",
    "mlflow_share",
    "mlflow_share_of_pairs",
    "driver_mb_per_10k_trials",
    "startup_s",
)
PURE = {"plain": 0.004, "prepared": 0.001, "own": 0.0005}  # seconds per trial


@pytest.mark.parametrize(("tier", "bins"), [("S", BINS), ("T", BINS), ("M", BINS), ("M", OUR_BINS)])
def test_all_contenders_fit_what_our_own_search_tries_on_the_same_rows(tmp_path: Path, tier: str, bins: int) -> None:
    """The same configurations, and in all of them the same score: rows, folds and models are the same."""
    ids = make_workload(tmp_path / "work", TIERS[tier], customers=2, trials=3)
    scenario = Scenario(tier, str(tmp_path / "work"), ids, trials=3, bins=bins)
    ours = TuneRunner(definition(scenario, mlflow=False)).run(str(tmp_path / "run"), progress=False, in_process=True)
    for customer, points in scenario.configurations().items():
        records = [record for record in ours.trial_records if record.customer == customer]
        assert [record.config for record in records] == points
        assert all(record.config.get("max_bin", bins) == bins for record in records)
        rows = plain.load(scenario, customer)
        scores = [plain.trial(scenario, rows, point) for point in points]
        whole = [record.steps[-1].score for record in records]  # ours counts with its best number of rounds
        sign = 1 if records[0].mode == "max" else -1  # a scorer of scikit-learn turns errors
        assert [sign * score for score in scores] == pytest.approx(whole, rel=1e-9)


def test_the_workload_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_workload(tmp_path / name, TIERS["M"], customers=2, trials=3)
    for path in ("configurations.json", "customers/c00001.csv"):
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()


def usage_of(samples: list[tuple[float, dict[int, float]]], roles: dict[int, str]) -> Usage:
    return Usage(1, [(when, cpu, dict.fromkeys(cpu, 100_000_000)) for when, cpu in samples], roles)


def test_steady_state_begins_with_the_slowest_workers_first_piece_and_ends_with_the_return() -> None:
    pieces = [(12.0, "one"), (13.0, "two"), (14.0, "one")]
    assert all_warm(pieces) == 13.0
    outcome = Outcome(
        began=0.0,
        returned=20.0,
        events=[(12.0, 2), (13.0, 2), (15.0, 4), (18.0, 3)],
        warm=all_warm(pieces),
        winners={"a": (0.5, 0.25), "b": (1.5, 0.75)},
    )
    cpu = [(0.0, {1: 0.0}), (13.0, {1: 3.0, 2: 6.0}), (20.0, {1: 4.0, 2: 19.0})]
    measured = figures("x", outcome, usage_of(cpu, {1: "driver", 2: "worker"}))
    assert (measured.trials, measured.steady_trials) == (11, 7)
    assert measured.seconds == pytest.approx(1.0)  # 7 s for 7 trials
    assert measured.core_seconds == pytest.approx(2.0)
    assert measured.by_process == pytest.approx({"driver": 1 / 7, "worker": 13 / 7})
    assert measured.startup == pytest.approx(13.0 - 4 * 1.0)  # the trials done meanwhile are not start-up
    assert measured.finish == pytest.approx(2.0)
    assert measured.score == 1.0


def test_mlflows_share_is_of_core_seconds_and_has_an_interval() -> None:
    def run(name: str, core_seconds: float, mlflow: float) -> Measured:
        outcome = Outcome(0.0, 20.0, [(12.0, 1), (15.0, 1)], 13.0, {"a": (0.5, 0.25)}, {"suggest_seconds": 0.0})
        cpu = [(0.0, {1: 0.0, 2: 0.0}), (13.0, {1: 0.0, 2: 0.0}), (20.0, {1: core_seconds - mlflow, 2: mlflow})]
        return figures(name, outcome, usage_of(cpu, {1: "driver", 2: "tuning.cli"}))

    result = TierResult("S", FIXED, 2, 2, 2, PURE)
    result.runs["ours"] = [run("ours", 100.0, 3.0), run("ours", 100.0, 4.0), run("ours", 100.0, 5.0)]
    assert result.summary()["mlflow_share"] == {"mean": 0.04, "low": 0.0152, "high": 0.0648, "rounds": 3}
    assert result.summary()["mlflow_share_of_pairs"] is None
    result.runs["ours_without_mlflow"] = [run("ours_without_mlflow", seconds, 0.0) for seconds in (94.0, 95.0)]
    assert result.summary()["mlflow_share_of_pairs"]["mean"] == pytest.approx(0.055)
    assert result.summary()["mlflow_share_of_pairs"]["rounds"] == 2


def test_a_figure_that_was_not_measured_is_missing_not_made_up() -> None:
    summary = TierResult("S", FIXED, 2, 4, 2, PURE).summary()
    assert all(summary[name] is None for name in FIGURES)


@pytest.mark.parametrize(("tier", "search"), [("S", FIXED), ("S", OWN), ("T", FIXED)])
def test_the_anatomy_sees_every_part_of_a_worker(tmp_path: Path, tier: str, search: str) -> None:
    watch, others = anatomy.dissect(tier, customers=3, trials=3, search=search, folder=tmp_path)
    assert set(watch.calls) == set(anatomy.PARTS)
    assert min(watch.cpu.values()) >= 0.0
    assert others >= 0.0
    whole = 1000 * (others + sum(watch.cpu.values())) / 3
    assert sum(anatomy.split(watch, others, 3).values()) == pytest.approx(whole, abs=0.01)


@pytest.mark.slow
@pytest.mark.ray
def test_a_quick_benchmark_ends_with_one_line_of_json() -> None:
    small = ("--customers", "30", "--trials", "3", "--contenders", "ours_without_mlflow,limit")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.throughput", "--tier", "S", "--quick", "--output", "json", *small],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert set(FIGURES) <= set(summary)
    assert summary["search"] == FIXED
    told = {*summary["rounds"], *(line.split()[0] for line in summary["skipped"])}
    assert told == {"ours_without_mlflow", "limit"}  # measured, or why not
    assert all(value > 0.0 for value in summary["ms_per_trial"].values())


# What a reader of that JSON line relies on.
OF_A_MILLION = (
    "core_ms_per_customer",
    "driver_mb",
    "files",
    "plan_s",
    "plan_mb",
    "leaderboard_s",
    "leaderboard_mb",
    "disk_mb",
    "model_ms",
    "seconds",
    "mlflow_bytes_per_customer",
    "resume_s",
)


@pytest.mark.slow
def test_a_killed_and_resumed_run_of_many_customers_is_whole_and_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.million", "--customers", "100", "--kill", "--seed", "1", "--output", "json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert {name: summary.get(name) for name in OF_A_MILLION if not summary.get(name, 0.0) > 0.0} == {}
    assert (summary["recorded_studies"], summary["recorded_trials"]) == (100, 300)
    assert summary["killed_after_customers"] < 100
    assert summary["wrong"] == []


def test_what_a_run_has_lost_or_holds_twice_is_counted(tmp_path: Path) -> None:
    from mlflow_records import open_run, study, trial

    from benchmarks.million.checks import recorded
    from tuning.records.parts import STUDIES, TRIALS, part_name
    from tuning.records.schema import Record
    from tuning.records.tables import encode
    from tuning.storage.run_directory import RunDirectory

    directory = RunDirectory(str(tmp_path / "run"))

    def write(kind: str, *records: Record) -> str:
        data = encode(records)
        name = part_name("0001", 0, kind, data)
        directory.write(name, data)
        return name

    with open_run(directory):
        write(TRIALS, trial("a", 0), trial("a", 1), trial("b", 0))
        damaged = write(STUDIES, study("b", 2))
        write(STUDIES, study("a", 2))
        write(TRIALS, trial("a", 1))
    (tmp_path / "run" / damaged).write_bytes(b"damaged")
    found = recorded(tmp_path / "run", customers=2, trials=2, before={damaged, "records/0000/trials-gone.parquet"})
    assert (found.studies, found.trials) == (1, 4)
    assert found.lost == 2  # the study b, and its second trial
    assert found.twice == 1
    assert (found.forgotten, found.damaged) == (1, 1)


def test_a_run_without_steady_state_is_refused() -> None:
    outcome = Outcome(0.0, 20.0, [(12.0, 2)], 13.0, {"a": (0.5, 0.25)})
    with pytest.raises(TooShortError, match="all 2 trials had ended before its last worker was warm"):
        figures("x", outcome, usage_of([(0.0, {1: 0.0}), (20.0, {1: 1.0})], {1: "driver"}))


def test_the_benchmark_of_gpus_compares_the_same_search(tmp_path: Path) -> None:
    """With shares of CPUs in place of a GPU, so that it runs anywhere."""
    from benchmarks import gpu

    gpu.write(tmp_path / "small", customers=2, rows=60)
    seconds, scores = gpu.search(tmp_path / "small", tmp_path / "run", 1, {"cpus": 1}, "auto")
    assert seconds > 0
    assert list(scores.index) == ["c00000", "c00001"]
    assert scores.notna().all()
