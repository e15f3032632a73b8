"""A rollback is a release that equals an old one; the same again goes no further back."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from builders import reason
from commands import tuning

from tuning import RunResult
from tuning.errors import RunError, UnknownCustomerError
from tuning.notes import texts
from tuning.serving.champion import champions_of, table_of
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, ROLLBACK, Release
from tuning.serving.releases import Releases
from tuning.serving.rollback import roll_back


@pytest.fixture
def releases(storage: Path) -> Releases:
    """Three releases: the run's, then another reason for two customers, then one for the first of them again."""
    releases = Releases("shops", storage)
    promote_run(RunResult(storage / "monday"), releases)
    for number, names in ((2, ("good", "well")), (3, ("good",))):
        before = releases.current()
        champions = [
            replace(each, reason=(reason(f"because {number}"),), since=number) if each.customer in names else each
            for each in champions_of(releases.champions(before))
        ]
        releases.place(Release(number, before.number, REFRESH), table_of(champions))
    return releases


def reasons(releases: Releases) -> dict[str, str]:
    rows = champions_of(releases.champions(releases.current()))
    return {each.customer: texts(each.reason) for each in rows if each.customer in ("good", "well")}


def test_all_customers_go_back_one_release_once(releases: Releases) -> None:
    release, new = roll_back(releases)
    assert new
    assert (release.number, release.parent, release.why, release.equals) == (4, 3, ROLLBACK, 2)
    assert reasons(releases) == {"good": "because 2", "well": "because 2"}
    with pytest.raises(RunError, match="release 4 of shops is a rollback already: it equals release 2"):
        roll_back(releases)
    assert roll_back(releases, 1)[0].number == 5
    assert roll_back(releases, 1) == (releases.current(), False)
    assert roll_back(releases, 3)[0].number == 6
    assert reasons(releases) == {"good": "because 3", "well": "because 2"}
    assert releases.current().table == releases.at(3).table
    assert releases.numbers() == [1, 2, 3, 4, 5, 6]


def test_one_customer_goes_back_to_its_champion_before(releases: Releases) -> None:
    release, _ = roll_back(releases, customer="well")
    assert (release.number, release.equals, release.customer) == (4, 1, "well")
    assert reasons(releases)["good"] == "because 3"
    assert reasons(releases)["well"].startswith("the winner of its search")
    with pytest.raises(RunError, match="is a rollback already: it equals release 1 for 'well'"):
        roll_back(releases, customer="well")
    assert roll_back(releases, 1, "well") == (releases.current(), False)
    assert roll_back(releases, customer="good")[0].equals == 2
    with pytest.raises(RunError, match="'few' has had no other champion"):
        roll_back(releases, customer="few")
    with pytest.raises(UnknownCustomerError):
        roll_back(releases, 1, "nobody")


def test_what_cannot_come_back_is_said_and_the_champions_stay(releases: Releases, storage: Path) -> None:
    Path(releases.directory.root, releases.at(2).name).write_text("{}")
    with pytest.raises(RunError, match=r"000002\.json is not what was written"):
        roll_back(releases, 2)
    with pytest.raises(RunError, match="shops has no release 9"):
        roll_back(releases, 9)
    shutil.rmtree(storage / "monday")
    with pytest.raises(RunError, match="release 1 of shops cannot come back, since its models are gone"):
        roll_back(releases, 1)
    with pytest.raises(RunError, match="release 1 of shops cannot come back, since its models are gone"):
        roll_back(releases, 1, "good")
    assert releases.current().number == 3


def test_the_first_release_has_none_before_it(storage: Path) -> None:
    releases = Releases("shops", storage)
    promote_run(RunResult(storage / "monday"), releases)
    with pytest.raises(RunError, match="release 1 of shops is the first one"):
        roll_back(releases)


def test_the_commands_show_what_they_do(storage: Path) -> None:
    where = ("--storage", storage)
    made = tuning("promote", storage / "monday", "--as", "shops", *where)
    assert made.exit_code == 3  # one customer has no answer
    assert made.stdout == (
        "release 1 of shops: 6 customers, 2 own models, 3 constants, 1 without an answer; 6 new, 0 replaced\n"
    )
    again = tuning("promote", storage / "monday", "--as", "shops", *where, "--output", "json")
    assert json.loads(again.stdout) | {"outcome": "partial", "release": 1, "new": False} == json.loads(again.stdout)
    shown = tuning("serving", "shops", *where)
    assert shown.exit_code == 0
    head, *lines = shown.stdout.splitlines()
    assert head.split() == ["customer", "answer", "model", "rows", "since", "score", "reason"]
    assert [line.split()[0] for line in lines] == ["few", "good", "odd", "text", "turned", "well"]
    rows = json.loads(tuning("serving", "shops", *where, "--output", "json").stdout)
    assert rows[1]["run"] == str(storage / "monday")
    assert tuning("serving", "shops", *where, "--output", "csv").stdout.startswith("customer,answer,run,study,")
    history = json.loads(tuning("serving", "shops", *where, "--history", "good", "--output", "json").stdout)
    assert [(each["release"], each["why"], each["answer"]) for each in history] == [(1, "promote", "own")]
    listed = tuning("serving", "shops", *where, "--releases").stdout.splitlines()
    assert listed[1].split()[0] == "1"
    refused = tuning("rollback", "shops", *where)
    assert (refused.exit_code, "is the first one" in refused.stderr) == (6, True)
    assert tuning("serving", "nobody", *where).exit_code == 6
    assert tuning("serving", "shops", *where, "--history", "nobody").exit_code == 2


def test_tables_fit_into_eighty_columns(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    tuning("promote", storage / "monday", "--as", "shops", "--storage", storage)
    for more in ((), ("--history", "turned"), ("--releases",)):
        lines = tuning("serving", "shops", "--storage", storage, *more).stdout.splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) > 1
