"""Workers that die: what they were at is known, the others lose nothing, and poison is put aside with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import SPACE
from chaos import POISON, duplicates, figure, hazards, seed_of, supervised, truth, write_hazards
from lone_worker import lone_workers

from tuning import RunResult

CUSTOMERS = 18
LIMITS = {"trial_seconds": 600.0, "memory_gb": 1.0}  # what hangs is ended sooner: `hazard`
POISONED = {2 * position + 1: kind for position, kind in enumerate(POISON)}
SAID = {
    "segfault": "segmentation fault",
    "abort": "aborted",
    "exit": "its process ended without a trace",
    "loop": "it ran longer than its time limit",
    "loop_in_c": "it ran longer than its time limit",
}


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run in which one customer of every kind of poison takes part."""
    folder = tmp_path_factory.mktemp("poisoned")
    write_hazards(folder / "data", CUSTOMERS, POISONED)
    done = supervised(hazards(folder / "data", limits=LIMITS), str(folder / "run"))
    print(done)
    return RunResult(str(folder / "run"))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """The same customers without poison."""
    folder = tmp_path_factory.mktemp("healthy")
    write_hazards(folder / "data", CUSTOMERS, {})
    return hazards(folder / "data", limits=LIMITS).run(str(folder / "run"), progress=False, in_process=True)


def test_every_customer_is_on_the_leaderboard_once_with_a_result_or_a_reason(poisoned: RunResult) -> None:
    board = poisoned.leaderboard().set_index("customer")
    assert sorted(board.index) == [f"c{number:04d}" for number in range(CUSTOMERS)]
    for number, kind in POISONED.items():
        row = board.loc[f"c{number:04d}"]
        assert row["status"] == ("quarantined" if kind in SAID else "ok"), kind
        if kind in SAID:
            assert SAID[kind] in str(row["reason"])
    assert set(board["status"]) == {"ok", "quarantined"}


def test_a_quarantine_names_trial_cause_and_a_command_that_reproduces_it(poisoned: RunResult) -> None:
    record = next(record for record in poisoned.study_records if record.customer == "c0005")
    path = poisoned.directory.display("definition.yaml")
    assert str(record.reason).endswith(f"Reproduce it with: tuning run {path} --customer c0005 --in-process")
    trial = int(str(record.reason).split()[1])
    assert str(record.reason).startswith(f"trial {trial} has ended its worker 2 times: segmentation fault.")
    assert record.trials == trial  # those before it are recorded, it is not
    assert record.error is not None
    assert "in hazard" in record.error


def test_healthy_customers_find_exactly_what_they_would_without_the_others(
    poisoned: RunResult, healthy: RunResult
) -> None:
    ill = {f"c{number:04d}" for number in POISONED}
    there, here = truth(poisoned), truth(healthy)
    for what in there:
        assert [row for row in there[what] if row["customer"].strip("'") not in ill] == [
            row for row in here[what] if row["customer"].strip("'") not in ill
        ]
    assert duplicates(poisoned) == []


def test_exceptions_nan_and_hunger_fail_their_trials_only(poisoned: RunResult) -> None:
    reasons = {
        kind: {str(record.reason or "") for record in poisoned.trial_records if record.customer == f"c{number:04d}"}
        - {""}
        for number, kind in POISONED.items()
        if kind not in SAID
    }
    assert reasons["exception"] == {"ValueError: poison"}
    assert reasons["memory"] == {"MemoryError"}
    assert all("nan" in reason for reason in reasons["nan"])


def test_a_crash_costs_the_others_one_restart(tmp_path: Path) -> None:
    write_hazards(tmp_path / "data", 6, {2: "exit"})
    done = supervised(hazards(tmp_path / "data", slots=1), str(tmp_path / "run"))
    batches = 6
    assert done["starts"] == batches + 2  # the crash, and the one in which its customer was alone
    assert [record.attempt for record in RunResult(str(tmp_path / "run")).trial_records] == [1] * len(
        RunResult(str(tmp_path / "run")).trial_records
    )


def test_the_number_of_crashes_is_the_users_choice(tmp_path: Path) -> None:
    """Three here, two above by default, one below."""
    write_hazards(tmp_path / "data", 1, {0: "exit"})
    done = supervised(hazards(tmp_path / "data", limits={"crashes_before_quarantine": 3}), str(tmp_path / "run"))
    assert done["starts"] == 3 + 1
    assert "has ended its worker 3 times:" in str(RunResult(str(tmp_path / "run")).study_records[0].reason)


def _kills(tmp_path: Path, customers: int, trials: int, kills: int, longest: int, interval: int) -> None:
    """Kill that many workers, each within `longest` moments; few enough that the work outlasts them."""
    assert kills * longest < 2 * customers * trials  # a trial has two moments at least
    seed = seed_of("worker kills")
    write_hazards(tmp_path / "data", customers, {})
    runner = hazards(tmp_path / "data", trials=trials, limits={"crashes_before_quarantine": 1000}, slots=1)
    numbers = [str(number) for number in (seed, kills, longest)]
    done = supervised(runner, str(tmp_path / "run"), "--kill", *numbers, "--interval", str(interval))
    result = RunResult(str(tmp_path / "run"))
    assert truth(result) == truth(runner.run(str(tmp_path / "whole"), progress=False, in_process=True))
    assert duplicates(result) == []
    assert done["kills"] == kills
    again = done["ran"] - customers * trials
    figure(f"{kills} of {done['starts']} workers killed over {customers * trials} trials: {again} trials run again")
    assert 0 <= again <= kills * (interval + 1)


@pytest.mark.slow
def test_workers_killed_at_random_lose_nothing(tmp_path: Path) -> None:
    _kills(tmp_path, customers=5, trials=20, kills=30, longest=6, interval=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("customers", "kills", "longest", "interval"), [(25, 200, 4, 3), (25, 30, 32, 10)])
def test_many_workers_killed_at_random_lose_nothing(
    tmp_path: Path, customers: int, kills: int, longest: int, interval: int
) -> None:
    _kills(tmp_path, customers, 500 // customers, kills, longest, interval)


def test_a_study_that_hangs_is_ended_by_its_own_limit(tmp_path: Path) -> None:
    write_hazards(tmp_path / "data", 2, {0: "loop", 1: "loop_in_c"})
    limits = {"study_seconds": 1.0, "crashes_before_quarantine": 1}
    # The first trial hangs, so that no study, however slow, comes to its limit between two trials.
    space = {**SPACE, "x": {**SPACE["x"], "default": 1.0}}
    done = supervised(hazards(tmp_path / "data", limits=limits, search_space=space), str(tmp_path / "run"))
    records = RunResult(str(tmp_path / "run")).study_records
    assert [record.status for record in records] == ["quarantined"] * 2
    assert all("it ran longer than its time limit" in str(record.reason) for record in records)
    assert all("has ended its worker 1 time:" in str(record.reason) for record in records)
    assert done["starts"] == 2 + 2  # of each, one that hangs and one that puts it aside


@pytest.mark.slow
def test_a_hang_is_ended_where_no_limit_is_set(tmp_path: Path) -> None:
    soon = "import tuning.basics.timing; tuning.basics.timing.HANG_S_OF_OBJECTIVE = 3.0"
    result = lone_workers(tmp_path, "loop_in_c", soon, limits={"crashes_before_quarantine": 1})
    assert result is not None
    record = result.study_records[0]
    assert record.status == "quarantined"
    assert "which is taken for a hang where none is set (limits.trial_seconds)" in str(record.reason)
