"""A release is placed whole or not at all, never changes, and what was changed by hand is not in force."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tuning.errors import DefinitionError, RunError, RunOwnedError, UnknownCustomerError
from tuning.notes import ServingCode
from tuning.serving.champion import OWN, Champion, champions_of, table_of
from tuning.serving.release import PROMOTE, REFRESH, Release, table_name
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory

ACME = Champion(
    customer="acme",
    answer=OWN,
    run="../../monday",
    study="acme",
    model_path="models/acme",
    model_sha256="0" * 64,
    configuration='{"members":[{"config":{"model":"ridge"},"seed":1,"stages":[],"steps":null,"weight":1.0}]}',
    rows=100,
    since=1,
    digest="1" * 64,
    searched=1,
    score=0.5,
    reason=(ServingCode.WINNER(),),
)
BETA = replace(
    ACME,
    customer="beta",
    study="beta",
    model_path="models/beta",
    score=None,
    notes=(ServingCode.FEWER_ROWS(rows=3, before=9),),
)


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    return Releases("churn", tmp_path / "runs")


def placed(releases: Releases, *champions: Champion, why: str = PROMOTE) -> Release:
    number, parent = releases.next_number(), releases.newest()
    draft = Release(number, None if parent is None else parent.number, why)
    return releases.place(draft, table_of(champions))


def test_what_is_placed_is_read_again(releases: Releases) -> None:
    assert releases.newest() is None
    first = placed(releases, ACME, BETA)
    again = Releases("churn", Path(releases.directory.root).parents[1])
    assert again.newest() == first
    assert (first.number, first.parent, first.why) == (1, None, PROMOTE)
    assert champions_of(again.champions(first)) == [ACME, BETA]
    assert again.champion(first, "beta") == BETA
    with pytest.raises(UnknownCustomerError, match="no customer 'gamma' in release 1 of churn"):
        again.champion(first, "gamma")


def test_a_table_that_did_not_change_is_named_again(releases: Releases) -> None:
    first = placed(releases, ACME)
    assert first.table is not None
    second = releases.place(Release(2, 1, REFRESH), first.table)
    assert second.table == first.table
    assert len(list(releases.directory.list("tables"))) == 1
    assert releases.newest() == second


def test_of_two_releases_at_once_one_is_made_and_the_other_says_so(releases: Releases) -> None:
    placed(releases, ACME)
    number = releases.next_number()
    placed(releases, BETA)
    with pytest.raises(RunOwnedError, match="somebody else has made release 2 of churn meanwhile"):
        releases.place(Release(number, 1, PROMOTE), table_of([ACME]))
    assert releases.champion(releases.current(), "beta") == BETA


@pytest.mark.parametrize(
    ("what", "harm"),
    [("releases", "changed"), ("releases", "cut"), *(("tables", harm) for harm in ("changed", "cut", "removed"))],
)
def test_a_release_that_was_changed_by_hand_is_refused_and_the_last_good_one_stays(
    releases: Releases, what: str, harm: str
) -> None:
    first = placed(releases, ACME)
    second = placed(releases, ACME, BETA)
    name = second.name if what == "releases" else table_name(str(second.table))
    file = Path(releases.directory.root, name)
    content = file.read_bytes()
    if harm == "removed":
        file.unlink()
    else:
        other = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        file.write_bytes(other if harm == "changed" else content[:-9])
    again = Releases("churn", Path(releases.directory.root).parents[1])
    assert again.newest() == first
    assert f"{name} is not what was written" in again.refused[2]
    third = placed(again, BETA)
    assert (third.number, third.parent) == (3, 1)
    assert again.newest() == third


@pytest.mark.parametrize(
    ("content", "said"),
    [("{}", "it is no release"), ('{"format": 1, "sha256": "", "release": ""}', "another version .* in format 1;")],
)
def test_where_no_release_is_good_it_is_said(releases: Releases, content: str, said: str) -> None:
    first = placed(releases, ACME)
    Path(releases.directory.root, first.name).write_text(content)
    with pytest.raises(RunError, match=rf"000001\.json is not what was written: {said}"):
        releases.current()


def test_history_names_each_change_once(releases: Releases) -> None:
    other = replace(ACME, model_path="models/other", since=3)
    placed(releases, ACME)
    placed(releases, ACME, BETA, why=REFRESH)
    placed(releases, other, BETA, why=REFRESH)
    found = releases.history("acme")
    assert [(release.number, champion) for release, champion in found] == [(1, ACME), (3, other)]
    with pytest.raises(UnknownCustomerError):
        releases.history("gamma")


def test_a_name_that_is_none_and_one_without_releases_are_said(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="is no name of champions"):
        Releases("../churn", tmp_path)
    with pytest.raises(RunError, match="tuning promote RUN --as churn"):
        Releases("churn", tmp_path).current()


def test_runs_are_named_so_that_the_storage_can_be_moved(releases: Releases, tmp_path: Path) -> None:
    inside, outside = RunDirectory(tmp_path / "runs" / "monday"), RunDirectory(tmp_path / "elsewhere")
    assert releases.reference(inside) == "../../monday"
    assert releases.reference(releases.directory) == "."
    assert releases.reference(outside) == str(tmp_path / "elsewhere")
    for each in (inside, outside, releases.directory):
        assert releases.run_directory(releases.reference(each)).uri == each.uri
    placed(releases, ACME)
    shutil.move(tmp_path / "runs", tmp_path / "moved")
    moved = Releases("churn", tmp_path / "moved")
    run = moved.champion(moved.current(), "acme").run
    assert moved.run_directory(run).root == str(tmp_path / "moved" / "monday")


def test_runs_on_object_storage_are_named_without_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    options = "?region=eu&endpoint_override=127.0.0.1:9&scheme=http"
    releases = Releases("churn", f"s3://key:secret@bucket/runs{options}")
    inside = RunDirectory(f"s3://key:secret@bucket/runs/monday{options}")
    assert releases.reference(inside) == "../../monday"
    assert releases.run_directory("../../monday").uri == inside.uri
    assert releases.directory.uri == f"s3://key:secret@bucket/runs/champions/churn{options}"
    with pytest.raises(RunError, match="has secrets in its URI"):
        releases.reference(RunDirectory(f"s3://key:secret@other/monday{options}"))
