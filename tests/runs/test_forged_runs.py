"""A stranger's run directory runs no code of the stranger's before its reader allows it, whatever reads it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import Result
from commands import tuning
from sklearn.linear_model import Ridge

from tuning import RunResult, TuneRunner
from tuning.data.child_process import ChildProcess
from tuning.errors import PlanError, TuningError, UntrustedCodeError
from tuning.serving.promoting import promote_run
from tuning.serving.releases import Releases

CODE = """
from pathlib import Path
from sklearn.linear_model import Ridge

def prepare(frame):
    Path(MARK).touch()
    return frame.assign(twice=frame["x"] * 2)

def metric(y, predicted):
    Path(MARK).touch()
    return float(-((y - predicted) ** 2).mean())

class Own(Ridge):
    def __init__(self, alpha=1.0):
        Path(MARK).touch()
        super().__init__(alpha)

class Odd(Ridge):
    def __setstate__(self, state):
        Path(MARK).touch()
        self.__dict__.update(state)

def objective(config):
    Path(MARK).touch()
    return config["x"]
"""
MODELS: dict[str, Any] = {"models": ["ridge"], "target": "y", "trials": 1, "algorithm": "random"}
SPACE = {"search_space": {"x": {"type": "float", "low": 0, "high": 1}}, "mode": "min", "trials": 1}


def made_by_a_stranger(mark: Path) -> Any:
    """A class that no import path tells, so that the run pickles it."""

    class Marked(Ridge):
        def __setstate__(self, state: dict[str, Any]) -> None:
            mark.touch()
            self.__dict__.update(state)

    return Marked()


FORGERIES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "prepare of a file": lambda here: {**MODELS, "prepare": f"{here}/code.py:prepare"},
    "prepare of a module": lambda here: {**MODELS, "prepare": f"{here.name}:prepare"},
    "metric": lambda here: {**MODELS, "metric": f"{here}/code.py:metric"},
    "factory": lambda here: {**MODELS, "models": [f"{here}/code.py:Own"], "allow_code": True},
    "pickled estimator": lambda here: {**MODELS, "models": [made_by_a_stranger(here / "mark")], "allow_code": True},
    "pickled winner": lambda here: {**MODELS, "models": [f"{here}/code.py:Odd"], "allow_code": True},
    "objective": lambda here: {**SPACE, "objective": f"{here}/code.py:objective"},
}


@pytest.fixture(params=FORGERIES)
def strange(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run of somebody else; its code leaves the file `mark` there."""
    for name in ("code.py", f"{tmp_path.name}.py"):
        (tmp_path / name).write_text(CODE.replace("MARK", repr(str(tmp_path / "mark"))))
    monkeypatch.syspath_prepend(str(tmp_path))
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    rows = pd.DataFrame({"x": x, "other": rng.normal(size=60), "y": 3 * x + rng.normal(size=60)})
    rows.to_csv(tmp_path / "acme.csv", index=False)
    fields = FORGERIES[request.param](tmp_path)
    data = {} if "objective" in fields else {"data": str(tmp_path / "acme.csv")}
    run(tmp_path, **data, **fields)
    (tmp_path / "mark").unlink(missing_ok=True)
    monkeypatch.setenv("TUNING_CONFIG", str(tmp_path / "config-of-the-reader"))
    return tmp_path


def run(folder: Path, **fields: Any) -> RunResult:
    runner = TuneRunner(**{"mlflow": False, "report": False, "search_space": None, **fields})
    return runner.run(folder / "run", progress=False, in_process=True)


READING = {
    "leaderboard": ("leaderboard", "RUN"),
    "show": ("show", "RUN"),
    "report": ("report", "RUN"),
    "report of a customer": ("report", "RUN", "--customer", "acme"),
    "runs": ("runs", "HERE"),
    "predict": ("predict", "RUN", "acme", "--data", "HERE/acme.csv"),
    "explain": ("explain", "RUN", "acme"),
    "explain a column": ("explain", "RUN", "acme", "--column", "x"),
    "explain all": ("explain", "RUN"),
    "mlflow sync": ("mlflow", "sync", "RUN", "--models", "all", "--tracking-uri", "sqlite:///HERE/strange.db"),
    "promote": ("promote", "RUN", "--as", "mine", "--storage", "HERE"),
    "predict --run": ("predict", "--run", "RUN", "--data", "HERE/acme.csv", "--output", "HERE/by-run"),
    "predict --release": (
        "predict",
        "--release=theirs",
        "--storage=HERE",
        "--data=HERE/acme.csv",
        "--output=HERE/by",
    ),
    "refresh": ("refresh", "theirs", "HERE/mine.yaml", "--storage=HERE", "--in-process", "--progress=none"),
}
IN_A_SAVED_MODEL = ["predict", "predict --run", "predict --release"]


@pytest.fixture
def promoted(strange: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with the run as champions, which the stranger has made, too; and rows that came since in `mine.yaml`.

    What children of a command would do is done in this process, the same function.
    """
    with contextlib.suppress(PlanError):  # an objective has no models
        promote_run(RunResult(strange / "run"), Releases("theirs", strange), allow_code=True)
    (strange / "mark").unlink(missing_ok=True)
    rows = pd.read_csv(strange / "acme.csv")
    (strange / "grown").mkdir()
    pd.concat([rows, rows[:6] + 1]).to_csv(strange / "grown" / "acme.csv", index=False)
    mine = {**MODELS, "data": str(strange / "grown"), "mlflow": False, "report": False, "portfolio": "none"}
    (strange / "mine.yaml").write_text(yaml.safe_dump(mine))
    monkeypatch.setattr(ChildProcess, "call", lambda self, what, seconds, function, *given: function(*given))
    return strange


def typed(here: Path, what: str, *more: str) -> Result:
    return tuning(*(word.replace("RUN", str(here / "run")).replace("HERE", str(here)) for word in READING[what]), *more)


@pytest.mark.mlflow
def test_no_command_runs_a_strangers_code(promoted: Path) -> None:
    strange = promoted
    for what in READING:
        typed(strange, what)
        assert not (strange / "mark").exists(), what
    result = RunResult(strange / "run")
    frame = pd.read_csv(strange / "acme.csv")
    customer = str(result.leaderboard()["customer"][0])
    for ask in (
        lambda: result.model(customer).predict(frame),
        lambda: result.customer(customer).importance(),
        lambda: result.customer(customer).hold_out(),
        lambda: result.importance(),
        lambda: result._repr_html_(),
    ):
        with contextlib.suppress(TuningError):
            ask()
        assert not (strange / "mark").exists()


@pytest.mark.parametrize("strange", ["prepare of a file", "prepare of a module", "pickled winner"], indirect=True)
def test_a_strangers_code_is_named_and_runs_when_it_is_allowed(promoted: Path) -> None:
    strange = promoted
    for what in IN_A_SAVED_MODEL:
        refused = typed(strange, what)
        assert (what, refused.exit_code) == (what, 6)
        assert "--allow-code" in refused.output
    with pytest.raises(UntrustedCodeError, match="allow_code=True"):
        RunResult(strange / "run").model("acme")
    assert not (strange / "mark").exists()
    for what in IN_A_SAVED_MODEL:
        assert (what, typed(strange, what, "--allow-code").exit_code) == (what, 0)
        assert (strange / "mark").exists()
        (strange / "mark").unlink()


@pytest.mark.parametrize("strange", ["prepare of a file", "metric", "factory", "pickled estimator"], indirect=True)
def test_a_stranger_explains_nothing_before_it_is_allowed(strange: Path) -> None:
    refused = tuning("explain", strange / "run", "acme")
    assert refused.exit_code == 6
    assert "brings code that no run of yours has run here" in refused.output
    assert tuning("explain", strange / "run", "acme", "--allow-code").exit_code == 0
    assert (strange / "mark").exists()


@pytest.mark.parametrize("strange", ["prepare of a file"], indirect=True)
def test_ones_own_run_needs_no_word(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TuneRunner.resume(strange / "run", progress=False, in_process=True)  # an order to run its code
    words = ("predict", strange / "run", "acme", "--data", strange / "acme.csv")
    assert tuning(*words).exit_code == 0
    listed = strange / "config-of-the-reader" / "trusted-code.txt"
    assert listed.stat().st_mode & 0o077 == 0
    listed.write_text("no digest\n")
    assert tuning(*words).exit_code == 6
