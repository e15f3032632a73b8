"""Runs are listed, the newest is the default of every command, and one customer is shown in full."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from builders import definition, write_customers
from click.testing import CliRunner, Result

from tuning import TuneRunner
from tuning.cli.program import COMMANDS, main
from tuning.runs.listing import runs_in


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `old` and `new`, of which the first has one customer more, and a folder that is no run."""
    folder = tmp_path_factory.mktemp("runs")
    write_customers(folder / "data", 2)
    for name, customers in (("old", 2), ("new", 1)):
        fields = definition(folder / "data", trials=3, customers=["c0000", "c0001"][:customers])
        TuneRunner(fields).run(folder / "runs" / name, in_process=True, progress=False)
    os.utime(folder / "runs" / "old" / "terms" / "0001.json", (1e9, 1e9))
    (folder / "runs" / "notes").mkdir()
    return folder


@pytest.fixture(autouse=True)
def _there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


def test_runs_are_listed_with_the_newest_first() -> None:
    listed = json.loads(call("runs", "--output", "json").stdout)
    assert [(run["run"], run["state"], run["customers"], run["succeeded"], run["trials"]) for run in listed] == [
        ("runs/new", "finished", 1, 1, 3),
        ("runs/old", "finished", 2, 2, 6),
    ]
    assert call("runs").stdout.splitlines()[1].startswith("runs/new")
    assert "1 older" in call("runs", "--most", "1").stderr
    assert call("runs", "elsewhere").stderr == "no run in elsewhere\n"


def test_a_run_that_has_studies_left_is_unfinished(here: Path, tmp_path: Path) -> None:
    shutil.copytree(here / "runs" / "old", tmp_path / "cut")
    for part in (tmp_path / "cut" / "records").rglob("studies-*"):
        part.unlink()
    (run,) = runs_in(str(tmp_path))
    assert run.outcome()["state"] == "unfinished"


def test_a_folder_that_cannot_be_read_costs_the_list_nothing(here: Path, tmp_path: Path) -> None:
    shutil.copytree(here / "runs" / "old", tmp_path / "whole")
    shutil.copytree(here / "runs" / "old", tmp_path / "damaged")
    for plan in (tmp_path / "damaged" / "plan").glob("*.parquet"):
        plan.write_bytes(b"no plan")
    states = {Path(run.path).name: run.outcome()["state"] for run in runs_in(str(tmp_path))}
    assert states == {"whole": "finished", "damaged": "damaged"}


@pytest.mark.long
def test_the_newest_run_is_the_default() -> None:
    told = call("leaderboard", "--output", "json")
    assert [row["customer"] for row in json.loads(told.stdout)] == ["c0000"]
    assert told.stderr == "run: runs/new, the newest in runs\n"
    assert call("report").stdout.strip().endswith("runs/new/report.html")
    assert call("explain").stdout
    assert call("predict", "--data", "data/c0000.csv").exit_code == 0  # of that run, which has one customer
    assert call("resume", "--in-process", "--output", "json").exit_code == 0


@pytest.mark.parametrize("command", ["explain", "leaderboard", "predict", "report", "resume", "show"])
def test_every_command_of_a_run_may_leave_it_out(command: str) -> None:
    assert command in COMMANDS
    assert "[RUN]" in call(command, "--help").stdout


def test_without_a_run_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = call("leaderboard")
    assert told.exit_code == 6
    assert "there is no run in 'runs': name the folder of one" in told.stderr


def test_one_customer_is_shown_in_full() -> None:
    text = call("show", "runs/old", "c0001").stdout
    assert "3 trials" in text
    assert "(won)" in text
    assert "alpha" in text
    told = json.loads(call("show", "runs/old", "c0001", "--output", "json").stdout)
    assert (told["customer"], told["study"]["status"], len(told["trials"])) == ("c0001", "ok", 3)
    assert json.loads(call("show", "--output", "json").stdout)["customer"] == "c0000"  # the only one of the newest run


@pytest.mark.parametrize("command", [("show",), ("explain",), ("predict", "--data", "data/c0001.csv")])
def test_a_customer_is_named_after_the_run_or_by_an_option(command: tuple[str, ...]) -> None:
    told = call(*command, "runs/old", "c0001")
    assert told.exit_code == 0, told.output
    assert call(*command, "runs/old", "--customer", "c0001").stdout == told.stdout
    newest = call(*command, "c0000")
    assert newest.stderr.startswith("run: runs/new, the newest in runs\n")
    assert newest.stdout == call(*command, "runs/new", "c0000").stdout == call(*command, "--customer", "c0000").stdout
    three, twice = call(*command, "a", "b", "c"), call(*command, "runs/old", "c0001", "--customer", "c0000")
    assert (three.exit_code, twice.exit_code) == (2, 2)
    assert "these are 3: a b c." in three.stderr
    assert "named twice: 'c0001' and --customer 'c0000'" in twice.stderr


def test_a_single_name_is_a_run_only_where_there_is_one(here: Path) -> None:
    assert "which of the 2 customers?" in call("show", "runs/old").stderr
    assert call("show", "runs/new").stdout == call("show", "runs/new", "c0000").stdout
    assert call("explain", "runs/old").stdout == call("explain", str(here / "runs" / "old")).stdout
    assert "no customer 'data' in this run" in call("show", "data").stderr  # a folder of something else


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("runs/old", "c001"), "no customer 'c001' in this run. Did you mean 'c0001'?"),
        (("runs/old", "acme"), "no customer 'acme' in this run. There are 'c0000', 'c0001'."),
        (("old", "c0001"), "there is no folder 'old'. Did you mean 'runs/old'?"),
        (("runs/odl", "c0001"), "there is no folder 'runs/odl'. Did you mean 'runs/old'?"),
        (("elsewhere", "c0001"), "there is no folder 'elsewhere'. `tuning runs` lists the runs in 'runs'."),
    ],
)
def test_who_or_what_is_not_there_is_said_with_what_is(names: tuple[str, str], said: str) -> None:
    answer = call("show", *names)
    assert answer.exit_code in (2, 6)
    assert said in answer.stderr


@pytest.mark.long
def test_of_a_customer_whose_prepare_raised_the_users_lines_are_shown(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    write_customers(tmp_path / "data" / "few", 1, rows=20)
    (tmp_path / "data" / "few" / "c0000.csv").rename(tmp_path / "data" / "few.csv")
    text = "def prepare(frame):\n    if len(frame) == 20:\n        frame['d'] = frame['gone']\n    return frame\n"
    (tmp_path / "mine.py").write_text(text)
    fields = definition(tmp_path / "data", prepare=f"{tmp_path}/mine.py:prepare")
    TuneRunner(fields).run(tmp_path / "run", in_process=True, progress=False)
    first, empty, title, *lines = call("show", str(tmp_path / "run"), "few").stdout.splitlines()
    assert first == "customer 'few': prepare failed: KeyError: 'gone'; 0 trials"
    assert (empty, title) == ("", "raised in:")
    assert "frame['d'] = frame['gone']" in lines[1]
    assert lines[-1] == "KeyError: 'gone'"
    assert len(lines) < 5
