"""Every command that is printed can be pasted into a shell, whatever a folder or a customer is called."""

from __future__ import annotations

import ast
import html
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
import sqlalchemy
from commands import tuning
from mlflow.store.db.utils import _make_parent_dirs_if_sqlite
from mlflow.utils.file_utils import local_file_uri_to_path
from paths import ROOT

from tuning import RunResult, TuneRunner
from tuning.basics.wording import command
from tuning.cli.output import show_finished
from tuning.cli.program import COMMANDS
from tuning.errors import TuningError
from tuning.records.ownership import begun_term, check_plan, claim_file, newest_claimed
from tuning.runs.report.page import page
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.settings import absolute, how_to_look, sqlite_uri

NAMES = [
    "plain", "my runs", "100%", "100%25", "a%20b", "#1", "(a)", "[x]", "{y}", "it's", 'say "so"', "a&b", "a;b", "$HOME",
    "a|b", "a<b>c", "~", "~me", "!", "*", "?", "q?x=1", "back\\slash", "tab\tin", "line\nbreak", "grün", "東京",
    "e\u0301", "-x", "--run-dir", "=", "a,b", "@", "a b  c", "`id`", " blank ",
]  # fmt: skip
COMMAND = re.compile(rf"\btuning (?:{'|'.join(COMMANDS)})\b")
BEGUN = re.compile(rf"{COMMAND.pattern}[^`;]*$")


def interpolated(path: Path) -> Iterator[str]:
    """Where a text of the code goes on from a command of ours with a value that nothing has quoted."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if COMMAND.search(text) else ():
        parts: list[ast.expr] = []
        if isinstance(node, ast.JoinedStr):
            parts = node.values
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [node.left, node.right]
        for part, more in pairwise(parts):
            if isinstance(part, ast.Constant) and not isinstance(more, ast.Constant) and BEGUN.search(str(part.value)):
                yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_the_code_makes_commands_in_one_place() -> None:
    found = [place for path in sorted((ROOT / "tuning").rglob("*.py")) for place in interpolated(path)]
    assert found == [], "make it with `tuning.basics.wording.command`, which quotes"


def test_what_is_looked_for_in_the_code_is_found(tmp_path: Path) -> None:
    texts = ['f"go on: tuning resume {x}"', '"tuning show " + x', 'f"`tuning report {x}`"']
    with patch(f"{__name__}.ROOT", tmp_path):
        for text in (*texts, 'f"`tuning validate` tells {x}"'):
            (tmp_path / "code.py").write_text(text)
            assert bool(list(interpolated(tmp_path / "code.py"))) == (text in texts), text


@pytest.mark.parametrize("name", NAMES)
def test_words_come_back_out_of_a_shell(name: str) -> None:
    assert shlex.split(command("show", name, "--customer", name)) == ["tuning", "show", name, "--customer", name]


@pytest.mark.parametrize("name", NAMES)
def test_mlflow_finds_what_lies_in_a_folder(name: str, tmp_path: Path) -> None:
    path = tmp_path / name / "mlflow.db"
    uri = sqlite_uri(str(path))
    assert sqlalchemy.make_url(uri).database == str(path)
    path.parent.mkdir()
    _make_parent_dirs_if_sqlite(uri)
    assert [each.name for each in tmp_path.iterdir()] == [name], "MLflow makes no other folder"
    assert shlex.split(how_to_look(uri, "e"))[-1] == uri
    place = str(tmp_path / name / "mlruns")
    assert local_file_uri_to_path(absolute(place)) == place


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run in a folder with signs of the shell, of two customers with such names."""
    folder = tmp_path_factory.mktemp("commands") / "my runs 100%25 #1 (a)" / 'it\'s "week" $47'
    lines = [f"{name},{number},{2 * number}" for name in ("it's a", "-b $c") for number in range(30)]
    table = folder.parent.parent / "t.csv"
    table.write_text("\n".join(["who,x,y", *lines]))
    runner = TuneRunner(
        data=str(table),
        by="who",
        target="y",
        models=["ridge"],
        trials=1,
        ensemble="none",
        portfolio="none",
        mlflow=False,
    )
    return runner.run(str(folder), in_process=True, progress=False)


def commands_in(text: str) -> list[list[str]]:
    """The commands between two marks, of a page's code, and at the ends of lines."""
    marked = [html.unescape(each) for each in re.findall(r"<code>(tuning [^<]*)</code>", text)]
    text = re.sub(r"<.*>", "", text)
    bare = re.findall(
        r"(?:leaderboard  |: )(tuning [a-z]+ .*?)(?:\. Then.*)?$", re.sub("`[^`]*`", "", text), re.MULTILINE
    )
    return [shlex.split(each) for each in [*marked, *re.findall(r"`(tuning [^`]*)`", text), *bare]]


@pytest.mark.long
def test_what_a_run_prints_and_its_report_shows_can_be_pasted(
    result: RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    run = result.directory.root
    assert tuning("report", run).exit_code == 0
    capsys.readouterr()
    show_finished(result, "table")
    said = capsys.readouterr().err
    told = commands_in(f"{said}\n{page(result)}")
    for words in told:
        assert run in words, words
        if "--data" not in words:
            assert tuning(*words[1:]).exit_code == 0, words
    assert {words[1] for words in told} == {"show", "leaderboard", "report", "explain", "predict"}


def test_errors_name_commands_that_can_be_pasted(result: RunResult, tmp_path: Path) -> None:
    folder = RunDirectory(str(tmp_path / "my runs" / "$47"))
    releases = Releases("my shops", str(tmp_path / "my runs"))
    claimed = newest_claimed(result.directory)
    assert claimed is not None
    name = claim_file(claimed.number)
    folder.write(name, result.directory.read(name))
    begun = said_by(lambda: begun_term(folder))
    folder.write("records/x", b"")
    deleted = said_by(lambda: check_plan(folder, claimed))
    folders = [(begun, folder.root), (deleted, folder.root)]
    champions = [(said_by(look), "my shops") for look in (releases.current, lambda: releases.at(7))]
    for text, value in [*folders, *champions]:
        (words,) = commands_in(text)
        assert value in words
        assert "--storage" not in words or str(tmp_path / "my runs") in words


def said_by(look: Callable[[], object]) -> str:
    with pytest.raises(TuningError) as error:
        look()
    return str(error.value)
