"""What docs/report.md shows works as it is written there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib import pyplot
from paths import ROOT

from tuning import RunResult, TuneRunner
from tuning.cli.program import main

PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^\$ (.*)$", PAGE, flags=re.M)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run in `runs/47` of the customers that the page names."""
    where = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"rooms": rng.normal(size=120), "age": rng.normal(size=120)})
    frame = frame.assign(shop=np.repeat(["acme", "other"], 60), y=2 * frame["rooms"] + rng.normal(size=120))
    runner = TuneRunner(
        data=frame, by="shop", target="y", models=["ridge"], scheduler="fifo", trials=8, mlflow=False, report=False
    )
    runner.run(where / "runs" / "47", in_process=True, progress=False)
    return where


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield
    pyplot.close("all")


def test_its_python_runs() -> None:
    names: dict[str, object] = {"result": RunResult("runs/47")}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.S):
        exec(block, names)  # what a reader does
    assert Path("optuna.db").is_file()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_its_commands_work(command: list[str]) -> None:
    answer = CliRunner().invoke(main, command)
    assert answer.exit_code == 0, answer.output
    assert "rooms" in answer.stdout or "value" in answer.stdout
