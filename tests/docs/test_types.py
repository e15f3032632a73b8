"""Types: how often the code still says `Any`, a number that only falls; and what a user's mistake is for mypy."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

from mypy import api
from paths import ROOT

LINES = 56  # lower it whenever a change leaves fewer; never raise it
# What the program names; all that is below it would take mypy ten seconds.
CHECKED = [
    ROOT / "tuning" / name for name in ("__init__.py", "driver/runner.py", "definition/keywords.py", "basics/public.py")
]
WRONG = ["targte", "trials", "metrc", "resume", "fit"]  # what mypy says of each wrong line


def lines_with_any(path: Path) -> set[int]:
    """The lines of a file that name `Any` in code: not in its imports, texts or comments."""
    found: set[int] = set()
    with tokenize.open(path) as stream:
        text = stream.read().splitlines()
    if not any("Any" in line for line in text):
        return found
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.NAME and token.string == "Any":
                found.add(token.start[0])
    return {line for line in found if not re.match(r"\s*(from|import)\b", text[line - 1])}


def test_mypy_refuses_a_wrong_key_and_a_wrong_value(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from tuning import TuneRunner, tune\n"
        "TuneRunner(data='x.csv', target='y', trials=3, models=['ridge'], split={'test': 0.3})\n"
        "TuneRunner(data='x.csv', targte='y')\n"
        "TuneRunner(data='x.csv', target='y', trials='many')\n"
        "tune([[1.0]], [1.0], metrc='mae')\n"
        "TuneRunner.resume('runs/47', trails=5)\n"
        "TuneRunner(data='x.csv', target='y').fit()\n"
    )
    quick = ["--follow-imports=skip", "--no-pretty", f"--cache-dir={tmp_path}"]
    said, _, status = api.run([str(program), *map(str, CHECKED), *quick])
    wrong = dict(re.findall(r"program.py:(\d): error: (.*)", said))
    assert status == 1
    assert list(wrong) == ["3", "4", "5", "6", "7"], said
    assert [word in wrong[line] for line, word in zip(wrong, WRONG, strict=True)] == [True] * 5, said


def test_any_is_said_no_more_often_than_before() -> None:
    files = [path for top in ("tuning", "search_spaces", "schedulers") for path in (ROOT / top).rglob("*.py")]
    count = sum(len(lines_with_any(path)) for path in files)
    assert count <= LINES, f"{count} lines say Any, {LINES} are allowed: name the type instead"
