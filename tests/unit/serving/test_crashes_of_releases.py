"""Killed at any durable step, a promotion, a rollback or a pruning leaves one champion each; the same again ends it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tuning import RunResult
from tuning.errors import RunOwnedError
from tuning.serving.champion import OWN, Champion, champions_of, table_of
from tuning.serving.kept_runs import prune_runs
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.serving.rollback import roll_back
from tuning.storage.run_directory import RunDirectory

STEPS = ("write", "claim", "delete")


def promote(storage: Path) -> None:
    promote_run(RunResult(storage / "monday"), Releases("shops", storage))


def back(storage: Path) -> None:
    roll_back(Releases("shops", storage), 1)


def prune(storage: Path) -> None:
    list(prune_runs(Releases("shops", storage), keep=1))


def nothing(storage: Path) -> None:
    """A first release is to be made."""


def second_release(storage: Path) -> None:
    """Of other champions than the run's, in another run."""
    promote(storage)
    releases = Releases("shops", storage)
    shutil.copytree(storage / "monday", storage / "tuesday")
    champion = next(each for each in champions_of(releases.champions(releases.current())) if each.answer == OWN)
    values = {name: getattr(champion, name) for name in champion.__slots__} | {"run": "../../tuesday", "since": 2}
    releases.place(Release(2, 1, REFRESH), table_of([Champion(**values)]))


def killed(step: int, work: Callable[[], None]) -> bool:
    """Whether a process that does this is killed after so many durable steps; it ends well before, where it has less.

    step: 2n is before the n-th one (from 0), 2n + 1 after it.
    """
    child = os.fork()
    if child == 0:
        count = 0

        def fatal(method: Callable[..., None]) -> Callable[..., None]:
            def counted(self: RunDirectory, *given: object) -> None:
                nonlocal count
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                method(self, *given)
                count += 2
                if count - 1 == step:
                    os.kill(os.getpid(), signal.SIGKILL)

            return counted

        for name in STEPS:
            setattr(RunDirectory, name, fatal(getattr(RunDirectory, name)))
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def state(storage: Path) -> list[tuple[str, str, str | None, str]]:
    """What serves each customer; [] where there is no release. Files of answers have other digests each time."""
    releases = Releases("shops", storage)
    newest = releases.newest()
    assert releases.refused == {}
    rows = [] if newest is None else champions_of(releases.champions(newest))
    assert len({each.customer for each in rows}) == len(rows)
    return [(each.customer, each.answer, each.model_sha256 if each.answer == OWN else None, each.run) for each in rows]


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "work", "least", "every"),
    [
        (nothing, promote, 3, 2),  # after a step is before the next one
        (second_release, promote, 2, 2),
        (second_release, back, 1, 1),
        (second_release, prune, 5, 6),  # unit/runs/test_deletion.py stops a deletion at each step
    ],
    ids=["first", "next", "rollback", "prune"],
)
def test_a_process_that_is_killed_leaves_the_old_or_the_new_release(
    storage: Path, tmp_path: Path, before: Callable[[Path], None], work: Callable[[Path], None], least: int, every: int
) -> None:
    before(storage)
    old, release = state(storage), len(Releases("shops", storage).numbers())
    whole = shutil.copytree(storage, tmp_path / "whole" / "runs")
    work(whole)
    new, numbers = state(whole), Releases("shops", whole).numbers()
    left = sorted(path.name for path in whole.iterdir())
    steps = every - 1
    while True:
        copy = shutil.copytree(storage, tmp_path / str(steps) / "runs")
        if not killed(steps, partial(work, copy)):
            break
        assert state(copy) == (new if len(Releases("shops", copy).numbers()) > release else old)
        work(copy)
        assert (state(copy), Releases("shops", copy).numbers()) == (new, numbers)
        assert sorted(path.name for path in copy.iterdir()) == left
        shutil.rmtree(copy)
        steps += every
    assert steps >= 2 * least


def test_of_two_promotions_at_once_one_makes_the_release_and_the_other_says_so(
    storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, claim = threading.Barrier(2), RunDirectory.claim

    def claim_together(self: RunDirectory, name: str, data: bytes) -> None:
        together.wait(60)
        claim(self, name, data)

    monkeypatch.setattr(RunDirectory, "claim", claim_together)
    ends: list[str] = []

    def run(storage: Path) -> None:
        try:
            promote(storage)
            ends.append("made")
        except RunOwnedError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=run, args=(storage,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends)[0] == "made"
    assert "somebody else has made release 1 of shops meanwhile" in sorted(ends)[1]
    assert Releases("shops", storage).numbers() == [1]
    promote(storage)
    assert Releases("shops", storage).numbers() == [1]
