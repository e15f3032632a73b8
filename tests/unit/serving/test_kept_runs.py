"""Nobody deletes a run that one of the last releases of any champions needs; what none needs can go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import tuning

from tuning import RunResult
from tuning.errors import RunError
from tuning.serving.champion import Champion, champions_of, table_of
from tuning.serving.kept_runs import delete_unneeded, prunable, prune_runs
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.serving.rollback import roll_back
from tuning.storage.run_directory import RunDirectory


def released(storage: Path, run: Path, name: str = "shops") -> Releases:
    """A release all of whose models are in that run, which is a copy of another one."""
    releases, directory = Releases(name, storage), RunDirectory(run)
    if not run.exists():
        shutil.copytree(storage / "monday", run, ignore=shutil.ignore_patterns("champions"))
    number, before = releases.next_number(), releases.newest()
    champion = Champion(
        *("good", "own", releases.reference(directory), "good", "models/good", "0" * 64, None, 60, number)
    )
    draft = Release(number, None if before is None else before.number, REFRESH)
    releases.place(draft, table_of([champion]))
    return releases


def test_a_run_that_a_release_needs_is_not_deleted(storage: Path) -> None:
    promote_run(RunResult(storage / "monday"), Releases("shops", storage))
    refused = tuning("delete", storage / "monday", "--yes")
    assert refused.exit_code == 6
    assert "release 1 of the champions shops needs models of" in refused.stderr
    assert "Nothing was deleted" in refused.stderr
    assert len(RunResult(storage / "monday")) == 6


def test_a_run_of_older_releases_may_be_deleted_by_hand(storage: Path) -> None:
    released(storage, storage / "tuesday")
    for day in ("wednesday", "thursday", "friday"):
        released(storage, storage / day)
    with pytest.raises(RunError, match="release 1 of the champions shops needs"):
        delete_unneeded(RunDirectory(storage / "tuesday"))
    assert delete_unneeded(RunDirectory(storage / "tuesday"), keep=3)
    assert not (storage / "tuesday").exists()


def test_pruning_frees_what_only_older_releases_need_wherever_it_is(storage: Path) -> None:
    outside = storage.parent / "elsewhere"
    releases = released(storage, outside)
    for day in ("tuesday", "wednesday", "thursday"):
        released(storage, storage / day)
        assert prunable(releases) == []
    released(storage, storage / "friday")
    assert prunable(releases) == [str(outside)]
    (freed,) = prune_runs(releases)
    assert (freed.what, freed.kept) == (str(outside), "")
    assert freed.size > 1000
    assert not outside.exists()
    assert prunable(releases) == []
    assert sorted(path.name for path in storage.iterdir()) == [
        *("champions", "friday", "monday", "thursday", "tuesday", "wednesday"),
    ]
    assert releases.numbers() == [1, 2, 3, 4, 5]
    with pytest.raises(RunError, match="release 1 of shops cannot come back"):
        roll_back(releases, 1)


def test_what_another_name_needs_stays_and_is_said(storage: Path) -> None:
    released(storage, storage / "tuesday", "bakeries")
    releases = released(storage, storage / "tuesday")
    released(storage, storage / "wednesday")
    where = ("shops", "--storage", storage, "--keep", "1")
    assert tuning("prune", *where).exit_code == 2  # nobody can be asked
    done = json.loads(tuning("prune", *where, "--yes", "--output", "json").stdout)
    assert done["freed"] == 0
    assert "release 1 of the champions bakeries needs" in done["found"][0]["kept"]
    assert (storage / "tuesday" / "plan").is_dir()
    released(storage, storage / "monday", "bakeries")
    shutil.rmtree(storage / "champions" / "bakeries")
    shown = tuning("prune", *where, "--yes").stdout.splitlines()
    assert shown[0].startswith(f"deleted {storage / 'tuesday'}, ")
    assert shown[1].endswith(" freed")
    assert releases.current().number == 2
    assert tuning("prune", *where, "--yes").stdout == "there is nothing to delete\n"


def test_a_storage_that_was_moved_still_knows_what_it_needs(storage: Path) -> None:
    released(storage, storage / "tuesday")
    moved = storage.parent / "moved"
    shutil.move(storage, moved)
    with pytest.raises(RunError, match="release 1 of the champions shops needs"):
        delete_unneeded(RunDirectory(moved / "tuesday"))


def test_answers_of_older_releases_go_with_them(storage: Path) -> None:
    releases = Releases("shops", storage)
    promote_run(RunResult(storage / "monday"), releases)
    before = {each.customer: each for each in champions_of(releases.champions(releases.current()))}
    pack = Path(releases.directory.root, str(before["few"].model_path)).parent
    assert pack.suffix == ".zip"
    released(storage, storage / "tuesday")
    assert [Path(each.what).name for each in prune_runs(releases, keep=2)] == []
    assert [Path(each.what).name for each in prune_runs(releases, keep=1)] == ["monday", pack.name]
    assert not pack.exists()


def test_runs_of_refreshes_that_came_to_nothing_go_and_those_of_the_next_one_stay(storage: Path) -> None:
    root = storage / "champions" / "shops" / "runs"
    for name in ("000001-a", "000002-b", "mine"):
        shutil.copytree(storage / "monday", root / name)
    releases = released(storage, storage / "monday")
    assert prunable(releases) == ["runs/000001-a"]


def test_a_mark_that_cannot_be_read_keeps_the_run(storage: Path) -> None:
    released(storage, storage / "monday")
    (file,) = (storage / "monday" / "champions").iterdir()
    file.write_text("{")
    with pytest.raises(RunError, match="says which champions need the run, and cannot be read"):
        delete_unneeded(RunDirectory(storage / "monday"))
