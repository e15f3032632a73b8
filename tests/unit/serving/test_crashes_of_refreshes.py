"""Ended at any durable step, a refresh leaves one champion each; the same again ends it."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from chaos import Crash, crashing, environment
from shop_weeks import FLAT, NAME, ShopWeeks, rows

from tuning.errors import RunOwnedError
from tuning.records import lease
from tuning.serving.refresh import Refreshed
from tuning.serving.release import PROMOTE
from tuning.storage.run_directory import RunDirectory

SPARE = {"search_every": 99}
#: What is new of each customer: one is searched for and promoted, one is fitted, one is as it was, one is new.
NEW = {"a": 90, "b": 64, "d": 60}


@pytest.fixture(autouse=True)
def _steps_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps in the same order each time: one thread that writes."""
    monkeypatch.setattr("tuning.storage.background.THREADS", 1)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> ShopWeeks:
    """Poor champions, and a week later; to be copied."""
    weeks = ShopWeeks.begun(tmp_path_factory.mktemp("shops"), ["a", "b", "c"], models=FLAT, trials=1)
    weeks = ShopWeeks(weeks.folder)
    for seed, (name, count) in enumerate(NEW.items()):
        weeks.write(name, rows(seed, count))
    return weeks


def refreshed(weeks: ShopWeeks) -> Refreshed:
    return weeks.refresh(**SPARE)


def told(weeks: ShopWeeks) -> tuple[object, ...]:
    """Who serves; models have other digests and places each time."""
    assert weeks.releases.refused == {}
    served = [
        (each.customer, each.configuration, each.rows, each.since, each.searched, each.digest, each.reason)
        for each in weeks.state().values()
    ]
    return weeks.releases.current().number, served


@pytest.fixture(scope="module")
def whole(begun: ShopWeeks, tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[object, ...], list[str]]:
    """What comes of it when nothing happens, and its durable steps."""
    weeks = begun.copied(tmp_path_factory.mktemp("whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuning.storage.background.THREADS", 1)
        with crashing(patch, 10**9) as steps:
            done = refreshed(weeks)
    assert (done.fitted, done.searched, done.promoted) == (["a", "b"], ["d", "a"], ["a"])
    return told(weeks), steps


def places(steps: int) -> list[int]:
    """Some of the steps, and the last four: the tables and the release."""
    return sorted({*range(2, steps + 1, 15), *range(steps - 3, steps + 1)})


@pytest.mark.long
def test_a_refresh_that_ends_at_any_step_is_finished_by_the_same_again(
    begun: ShopWeeks, whole: tuple[tuple[object, ...], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, steps = whole
    before = told(begun)
    for place in places(len(steps)):
        weeks = begun.copied(tmp_path / str(place))
        with crashing(monkeypatch, place) as reached, suppress(Crash):  # a slow run may have a step more or less
            refreshed(weeks)
        lease._HELD.clear()  # the process has ended
        made = any(step.startswith("releases/") for step in reached)
        assert told(weeks) == (expected if made else before)
        assert refreshed(weeks).new is not made
        assert told(weeks) == expected
        assert refreshed(weeks).new is False


def test_of_two_refreshes_at_once_one_owns_it_and_the_other_says_so(
    begun: ShopWeeks, whole: tuple[tuple[object, ...], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weeks, write, said = begun.copied(tmp_path), RunDirectory.write, list[str]()

    def write_while_another_begins(self: RunDirectory, name: str, data: bytes) -> None:
        if not said and name.startswith("records/"):
            said.append("")
            with pytest.raises(RunOwnedError) as error:
                refreshed(weeks)
            said[0] = str(error.value)
        write(self, name, data)

    monkeypatch.setattr(RunDirectory, "write", write_while_another_begins)
    refreshed(weeks)
    assert "is already being run" in said[0]
    assert told(weeks) == whole[0]


def test_a_release_that_somebody_else_makes_meanwhile_stays(
    begun: ShopWeeks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weeks, claim = begun.copied(tmp_path), RunDirectory.claim

    def claim_after_another(self: RunDirectory, name: str, data: bytes) -> None:
        if name.startswith("releases/") and weeks.releases.numbers() == [1]:
            with monkeypatch.context() as patch:
                patch.setattr(RunDirectory, "claim", claim)
                weeks.promote("other")
        claim(self, name, data)

    monkeypatch.setattr(RunDirectory, "claim", claim_after_another)
    with pytest.raises(RunOwnedError, match="somebody else has made release 2 of shops meanwhile"):
        refreshed(weeks)
    assert (weeks.releases.current().why, weeks.releases.numbers()) == (PROMOTE, [1, 2])


@pytest.mark.slow
def test_a_refresh_whose_process_is_killed_is_finished_by_the_same_command(
    begun: ShopWeeks, whole: tuple[tuple[object, ...], list[str]], tmp_path: Path
) -> None:
    weeks = begun.copied(tmp_path)
    (tmp_path / "shops.yaml").write_text(yaml.safe_dump({**weeks.fields, "data": f"{weeks.data}/*.csv"}))
    command = [sys.executable, "-m", "tuning.cli", "refresh", NAME, str(tmp_path / "shops.yaml"), "--in-process"]
    command += ["--storage", str(tmp_path / "runs"), "--search-every", "99"]
    runs, before, numbers = tmp_path / "runs" / "champions" / NAME / "runs", told(weeks), list[int]()
    for files in (20, 40, 60, 10**6):
        child = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while child.poll() is None and len([*runs.rglob("*")]) < files:
            time.sleep(0.002)
        child.kill()
        child.wait()
        numbers.append(weeks.releases.current().number)
        assert told(weeks) == (before if numbers[-1] == before[0] else whole[0])
    assert numbers[0] == before[0]
    assert numbers[-1] == before[0] + 1
    assert weeks.refresh(search_every=99).new is False
