"""Going on with a run: nothing recorded runs again, and the end is that of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import counted, definition, tuner_of, write_customers
from chaos import Crash, crashing, duplicates, environment, truth, wait_for
from paths import HELPERS

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import RunError
from tuning.records.ownership import newest_term
from tuning.records.parts import DRIVER, TRIALS, of_kind, part_name
from tuning.records.tables import decode, encode
from tuning.runs.begin import begin, resume_run
from tuning.runs.plan_file import read_plan
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import PACKED, SPREAD

RIDGE = {"type": "constant", "value": "ridge"}
QUIET = {"progress": False, "in_process": True}


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("customers")
    write_customers(folder, 6)
    return folder


@pytest.fixture(scope="module")
def undisturbed(customers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the search over the customers finds out when nothing happens."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    return truth(TuneRunner(**definition(customers)).run(str(run), **QUIET))


@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_crash_between_parts_costs_nothing_that_is_recorded(
    customers: Path, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    run = str(tmp_path / "run")
    with crashing(monkeypatch, after, only="records/"), pytest.raises(Crash):
        TuneRunner(**definition(customers)).run(run, **QUIET)
    before = {record.key: record.started for record in RunResult(run).trial_records}
    result = TuneRunner.resume(run, **QUIET)
    assert truth(result) == undisturbed
    assert duplicates(result) == []
    kept = {record.key: record.started for record in result.trial_records if record.key in before}
    assert kept == before


def test_recorded_trials_are_replayed_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "ran"
    runner = tuner_of(counted(log), algorithm="optuna", trials=25)
    # Every trial becomes a part of its own, so that a crash leaves some of them behind.
    runner.timing = Timing(parts_s=0.0)
    with crashing(monkeypatch, 15, only="records/"), pytest.raises(Crash):
        runner.run(str(tmp_path / "run"), **QUIET)
    result = runner.run(str(tmp_path / "run"), resume=True, **QUIET)
    assert len(log.read_text().split()) == 25
    other = tuner_of(counted(tmp_path / "other"), algorithm="optuna", trials=25)
    assert truth(result) == truth(other.run(str(tmp_path / "undisturbed"), **QUIET))


def test_an_existing_run_is_only_gone_on_with_when_asked_to(tmp_path: Path) -> None:
    runner = tuner_of(counted(tmp_path / "ran"), trials=2)
    runner.run(str(tmp_path / "run"), **QUIET)
    with pytest.raises(RunError, match=r"already holds a run. Resume it with runner.run\('.*run', resume=True\), or"):
        runner.run(str(tmp_path / "run"), **QUIET)
    assert len(runner.run(str(tmp_path / "run"), resume=True, **QUIET).trial_records) == 2


@pytest.mark.parametrize("algorithm", ["random", "optuna"])
def test_more_trials_extend_finished_studies_as_if_they_had_been_asked_for_at_once(
    customers: Path, tmp_path: Path, algorithm: str
) -> None:
    small = definition(customers, trials=3, algorithm=algorithm, scheduler="asha")
    TuneRunner(**small).run(str(tmp_path / "run"), **QUIET)
    result = TuneRunner.resume(str(tmp_path / "run"), trials=14, **QUIET)
    large = TuneRunner(**{**small, "trials": 14}).run(str(tmp_path / "large"), **QUIET)
    assert truth(result) == truth(large)
    assert duplicates(result) == []
    assert len(result.model("c0000").predict(_frame(customers / "c0000.csv"))) == 40


def _frame(path: Path) -> Any:
    return pd.read_csv(path)


def test_more_customers_join_and_the_others_stay(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 3)
    fields = definition(tmp_path / "data")
    first = TuneRunner(**fields).run(str(tmp_path / "run"), **QUIET)
    write_customers(tmp_path / "data", 5)  # the same first three, and two more
    result = TuneRunner(**fields).run(str(tmp_path / "run"), resume=True, **QUIET)
    assert list(result.leaderboard()["customer"]) == [f"c{number:04d}" for number in range(5)]
    assert truth(result)["trials"][:12] == truth(first)["trials"]
    assert truth(result) == truth(TuneRunner(**fields).run(str(tmp_path / "whole"), **QUIET))


def test_a_manifest_is_read_again_by_a_resume_that_is_given_the_definition(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 3)
    manifest, run = tmp_path / "manifest.yaml", str(tmp_path / "run")
    manifest.write_text("acme: {path: data/c0000.csv, trials: 2}\nbeta: data/c0001.csv\n")
    fields = {**definition(tmp_path), "data": None, "manifest": str(manifest)}
    TuneRunner(**fields).run(run, **QUIET)
    manifest.write_text("acme: {path: data/c0000.csv, trials: 3}\nbeta: data/c0001.csv\n")
    with pytest.raises(RunError, match="trials of customer 'acme': 2 there, 3 here"):
        TuneRunner(**fields).run(run, resume=True, **QUIET)
    manifest.write_text("acme: {path: data/c0000.csv, trials: 2}\nbeta: data/c0002.csv\ngamma: data/c0001.csv\n")
    result = TuneRunner(**fields).run(run, resume=True, **QUIET)
    assert truth(result) == truth(TuneRunner(**fields).run(str(tmp_path / "whole"), **QUIET))


@pytest.mark.parametrize("there", ["ridge", {"model": RIDGE, "alpha": {"type": "float", "low": 0.1, "high": 9.0}}])
def test_another_search_space_of_one_customer_is_refused_with_a_diff(tmp_path: Path, there: Any) -> None:
    write_customers(tmp_path / "data", 1)
    run, path = str(tmp_path / "run"), str(tmp_path / "data" / "c0000.csv")

    def runner(space: Any) -> TuneRunner:
        return TuneRunner(**definition(tmp_path, data={"acme": {"path": path, "search_space": space}}))

    first = runner(there).run(run, **QUIET)
    with pytest.raises(RunError, match=r"search_space of customer 'acme': .* there, 'lasso' here"):
        runner("lasso").run(run, resume=True, **QUIET)
    assert truth(runner(there).run(run, resume=True, **QUIET)) == truth(first)
    assert truth(TuneRunner.resume(run, **QUIET)) == truth(first)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"metric": "neg_mean_squared_error"}, "metric: 'r2' there, 'neg_mean_squared_error' here"),
        ({"trials": 2}, "trials: 4 there, 2 here; they can only become more"),
        ({"seed": 12}, "seed: 11 there, 12 here"),
        ({"algorithm": "random"}, "algorithm: {'name': 'optuna'} there, {'name': 'random'} here"),
        ({"split": {"folds": 5}}, "split: not set there, {'folds': 5} here"),
        ({"customers": ["c0001"]}, "customers: 'c0000', 'c0002', 'c0003', 'c0004', 'c0005' here no more"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_any_other_change_is_refused_with_a_diff(
    customers: Path, finished: str, change: dict[str, Any], line: str
) -> None:
    runner = TuneRunner(**definition(customers, **change))
    with pytest.raises(RunError) as refusal:
        runner.run(finished, resume=True, **QUIET)
    assert line in str(refusal.value)
    assert f"TuneRunner.resume({finished!r})" in str(refusal.value)


@pytest.fixture(scope="module")
def finished(customers: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    run = str(tmp_path_factory.mktemp("finished") / "run")
    TuneRunner(**definition(customers)).run(run, **QUIET)
    return run


def test_limits_and_slots_may_change_without_asking(customers: Path, finished: str) -> None:
    result = TuneRunner.resume(finished, slots=1, time_budget=600, **QUIET)
    assert len(result.leaderboard()) == 6


@pytest.mark.parametrize("keyed", [False, True], ids=["files", "frame"])
def test_a_customer_over_a_limit_is_taken_up_when_the_limit_is_raised(keyed: bool, tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    write_customers(tmp_path / "more", 3, rows=50)
    (tmp_path / "more" / "c0002.csv").rename(tmp_path / "data" / "c0002.csv")
    fields = {**definition(tmp_path / "data"), "limits": {"max_rows": 45}}
    if keyed:
        frames = [_frame(path).assign(store=path.stem) for path in sorted((tmp_path / "data").glob("*.csv"))]
        fields |= {"data": pd.concat(frames), "by": "store"}
    run = str(tmp_path / "run")
    first = TuneRunner(**fields).run(run, **QUIET).leaderboard().set_index("customer")
    assert dict(first["status"]) == {"c0000": "ok", "c0001": "ok", "c0002": "no_model"}
    assert "limits.max_rows: 45" in first["reason"]["c0002"]

    still = TuneRunner.resume(run, limits={"max_rows": 49}, **QUIET).leaderboard().set_index("customer")
    assert "limits.max_rows: 49" in still["reason"]["c0002"]
    result = TuneRunner.resume(run, limits={"max_rows": 50}, **QUIET)
    board = result.leaderboard().set_index("customer")
    assert set(board["status"]) == {"ok"}
    assert duplicates(result) == []
    assert dict(board["cv_score"][["c0000", "c0001"]]) == dict(first["cv_score"][["c0000", "c0001"]])
    assert TuneRunner.resume(run, limits={"max_rows": 10}, **QUIET).unfinished == 0  # nobody loses a model


def test_a_function_of_the_program_is_asked_for_where_it_is(tmp_path: Path) -> None:
    tuner_of(lambda config: config["x"], trials=2).run(str(tmp_path / "run"), **QUIET)
    with pytest.raises(RunError, match=r"TuneRunner\(objective=…, …\).run\(run_dir, resume=True\)"):
        TuneRunner.resume(str(tmp_path / "run"), **QUIET)


def test_a_changed_prepare_file_is_a_change(customers: Path, tmp_path: Path) -> None:
    code = tmp_path / "prepare.py"
    code.write_text("def prepare(frame):\n    return frame\n")
    runner = TuneRunner(**definition(customers, prepare=f"{code}:prepare"))
    runner.run(str(tmp_path / "run"), **QUIET)
    runner.run(str(tmp_path / "run"), resume=True, **QUIET)
    code.write_text("def prepare(frame):\n    return frame.dropna()\n")
    with pytest.raises(RunError, match=r"prepare: .*or its file changed"):
        runner.run(str(tmp_path / "run"), resume=True, **QUIET)


def test_a_damaged_part_costs_its_trials_only_and_a_resume_brings_them_back(
    customers: Path, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    result = TuneRunner(**definition(customers)).run(str(run), **QUIET)
    recorded = len(result.trial_records)
    part = run / of_kind(list(result.directory.list("records")), TRIALS)[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    damaged = RunResult(str(run))
    assert 0 < len(damaged.trial_records) < recorded
    assert len(damaged.leaderboard()) == 6
    assert list(damaged.damaged) == [str(part.relative_to(run))]
    assert truth(TuneRunner.resume(str(run), **QUIET)) == undisturbed


def test_trials_behind_a_lost_one_run_again_with_it_and_count_once(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    run = tmp_path / "run"
    runner = TuneRunner(**definition(tmp_path / "data"))
    runner.timing = Timing(parts_s=0.0)  # every trial is a part of its own
    whole = runner.run(str(run), **QUIET)
    undisturbed = truth(whole)
    (run / of_kind(list(whole.directory.list("records")), TRIALS)[1]).unlink()
    result = TuneRunner.resume(str(run), **QUIET)
    assert truth(result) == undisturbed
    assert (list(result.leaderboard()["trials"]), result.summary()["trials"]) == ([4], 4)
    assert duplicates(result) == []
    first = {record.key: record.started for record in whole.trial_records if record.trial == 0}
    assert first.items() <= {record.key: record.started for record in result.trial_records}.items()


PROGRAM = """
import sys
from builders import definition
from tuning import TuneRunner
from pathlib import Path
run, data, in_process = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "here"
print("ready", flush=True)
TuneRunner(**definition(data, trials=60)).run(run, resume=True, progress=False, in_process=in_process)
"""


def _driver(run: Path, data: Path, where: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(run), str(data), where],
        env=environment(),
        cwd=HELPERS,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.chaos
@pytest.mark.slow
def test_drivers_killed_in_the_middle_lose_nothing(customers: Path, tmp_path: Path) -> None:
    """SIGKILL at random moments of a run without Ray, each time after something new was recorded."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    run = tmp_path / "run"
    before: dict[Any, float] = {}
    for _ in range(3):
        driver = _driver(run, customers, "here")
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        seen = len(list(run.glob("records/*/trials-*")))
        wait_for(lambda seen=seen: len(list(run.glob("records/*/trials-*"))) > seen, what="a new part")
        os.kill(driver.pid, signal.SIGSTOP if rng.random() < 0.3 else signal.SIGCONT)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        known = {record.key: record.started for record in RunResult(str(run)).trial_records}
        assert before.items() <= known.items()
        before = known
    result = TuneRunner.resume(str(run), **QUIET)
    assert before.items() <= {record.key: record.started for record in result.trial_records}.items()
    assert duplicates(result) == []
    term = newest_term(result.directory)
    assert term is not None
    assert term.number == 4
    undisturbed = TuneRunner(**definition(customers, trials=60)).run(str(tmp_path / "undisturbed"), **QUIET)
    assert truth(result) == truth(undisturbed)


def test_a_run_of_one_process_is_packed_whatever_its_definition_says(tmp_path: Path) -> None:
    """So trials behind a lost one run again with it, and count once; and a resume on Ray goes on with them."""
    write_customers(tmp_path / "data", 1)
    run, runner = tmp_path / "run", TuneRunner(**definition(tmp_path / "data", placement="spread"))
    runner.timing = Timing(parts_s=0.0)
    before = truth(runner.run(str(run), **QUIET))
    owned = newest_term(RunDirectory(str(run)))
    assert owned is not None
    assert {study.placement for study in read_plan(RunDirectory(str(run)), owned).studies} == {PACKED}
    (lost,) = (part for part in (run / "records").rglob("trials-*") if read_numbers(part) == [1])
    lost.unlink()
    again = TuneRunner.resume(str(run), **QUIET)
    assert truth(again) == before
    assert list(again.leaderboard()["trials"]) == [4]
    assert truth(runner.run(str(run), resume=True, **QUIET)) == before


def test_trials_that_have_overlapped_are_not_repeated_in_one_process(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    owned = begin(TuneRunner(**definition(tmp_path / "data", placement="spread")).definition, str(tmp_path / "run"))
    owned.lease.release()
    before = TuneRunner(**definition(tmp_path / "data")).run(tmp_path / "before", **QUIET)
    data = encode(before.trial_records[:1])
    owned.directory.write(part_name(owned.term.folder, DRIVER, TRIALS, data), data)
    with pytest.raises(RunError, match=r"trials of 'c0000' have run at the same time.*Resume it with Ray: "):
        TuneRunner.resume(owned.directory.uri, **QUIET)
    again = resume_run(owned.directory)
    again.lease.release()
    assert again.plan.placement == SPREAD


def read_numbers(part: Path) -> list[int]:
    return [record.trial for record in decode(part.read_bytes())]
