"""Whatever README and docs show is run as it stands there, page by page and in order, on small data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from made_up import write_customers
from mlflow_server import MlflowServer
from named_commands import PIP, declared, is_command, options, unknown, without_program, words_of
from page_folder import CHURN, DEFINITION, QUICK, hurry, write_folder
from page_runner import PageRunner
from pages import PAGES, README, blocks, code_in_text, commands, named
from s3_server import Bucket
from served_folder import ServedFolder
from shown_output import not_printed

from tuning import RunResult, TuneRunner
from tuning.records.schema import TrialRecord
from tuning.serving.releases import FOLDER

# Commands whose names and options are looked up only, by how they begin, and why.
NOT_RUN = {
    "curl": "asks the server of the line before it",
    "make test": "runs these tests",
    "mlflow models serve": "makes an environment from a package index; fresh/test_serving.py serves every family",
    "mlflow server": "serves until it is stopped; a real one answers at its address",
    "mlflow ui": "serves until it is stopped",
    "pip": "would change this environment; tests/fresh installs into new ones",
    "tuning compare churn.yaml --algorithms random,optuna": "docs/compare.md has it in Python, runs/ as a command",
    "tuning demo": "README.md has what it prints, and runs it by `make demo`",
    "tuning mlflow sync runs/47": "docs/mlflow-server.md runs the same on a server",
    "tuning cancel": "service/ ends runs for good",
    "tuning doctor": "starts a Ray of its own; unit/cli/test_doctor.py looks at what it says",
    "tuning schedule end": "service/test_served.py ends a schedule",
    "tuning serve": "serves until it is stopped; a real one answers at its address",
    "tuning stop": "service/test_served.py stops a run",
    "tuning submit churn.yaml --schedule": "unit/service/test_schedules.py has the times",
    "tuning watch": "service/test_served.py follows a run",
}
# Blocks of text that nothing prints, by page and first word, and why.
DRAWN = {
    ("docs/architecture.md", "cli"): "the packages, which test_architecture.py compares with the code",
    ("docs/architecture.md", "definition"): "a drawing",
    ("docs/concepts.md", "run"): "a drawing",
    ("docs/reverse-proxy.md", "tuning.example"): "a file of Caddy",
}
# What schedulers leave in the records of the searches that a page shows.
DECIDED: dict[str, dict[str, Callable[[TrialRecord], bool]]] = {
    "docs/objectives.md": {
        "pbt": lambda trial: bool(trial.lineage) and [step.step for step in trial.steps] == list(range(1, 11)),
    },
    "docs/schedulers.md": {
        "asha": lambda trial: trial.state == "stopped" and str(trial.reason).startswith("asha: rung"),
        "pbt": lambda trial: bool(trial.lineage),
    },
}


# What a page with one of them needs.
S3, TRACKING = "s3://bucket", "mlflow server"
SUBMITTED = f"customers: [acme, beta]\ntrials: 2\nsearch_space: {QUICK}\nreport: false\n"
SERVICE = ("tuning submit churn.yaml --wait\n", "TuningClient(")


def shown_by(page: Path) -> str:
    return "".join(block.text for block in blocks(page))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data that pages name, and a finished run of it in `run`."""
    folder = tmp_path_factory.mktemp("page")
    write_folder(folder)
    (folder / DEFINITION).write_text(CHURN)
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        TuneRunner.from_yaml(folder / DEFINITION).run(folder / "run")
    return folder


@pytest.fixture(scope="session")
def served(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    """A server with that data."""
    made = ServedFolder(tmp_path_factory.mktemp("served"), "--data", str(prepared), "--mlflow", "none")
    yield made
    made.end()


@pytest.fixture
def elsewhere(
    page: Path, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """Patterns of the addresses that a page names, and those of real servers on loopback."""
    text, found = shown_by(page), {}
    with ExitStack() as stack:
        if S3 in text:
            bucket: Bucket = request.getfixturevalue("bucket")
            for path in (folder / "customers").iterdir():
                bucket.put(f"customers/{path.name}", path.read_bytes())
            found[rf"{S3}/([\w./*-]+)"] = bucket.uri(r"\1")
        if TRACKING in text:
            (place := folder / "server").mkdir()
            server = stack.enter_context(MlflowServer(place, request.getfixturevalue("migrated_database")))
            found["http://127.0.0.1:5000"] = server.uri
        if any(each in text for each in SERVICE):
            (folder / DEFINITION).write_text(f"{CHURN}{SUBMITTED}")
            served: ServedFolder = request.getfixturevalue("served")
            monkeypatch.setenv("TUNING_CONFIG", served.environment["TUNING_CONFIG"])
            monkeypatch.setenv("TUNING_SERVER", served.url)
            found["http://127.0.0.1:8420"] = served.url
        yield found


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with that data; runs in it are quick."""
    shutil.copytree(prepared, tmp_path, ignore=shutil.ignore_patterns("run", DEFINITION), dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")  # what pages show is as wide as it is
    hurry(monkeypatch)
    yield tmp_path
    if mlflow := sys.modules.get("mlflow"):
        mlflow.set_tracking_uri(None)  # a page may have set it, and with it a variable


def needed(page: Path) -> Any:
    """A page with the markers of what it needs."""
    text = shown_by(page)
    marks = [pytest.mark.s3] * (S3 in text) + [pytest.mark.mlflow] * ("import mlflow" in text or TRACKING in text)
    return pytest.param(page, id=named(page), marks=marks)


@pytest.mark.parametrize("page", [needed(page) for page in PAGES if blocks(page)])
def test_what_a_page_shows_runs(page: Path, prepared: Path, folder: Path, elsewhere: dict[str, str]) -> None:
    runner = PageRunner(prepared / "run", NOT_RUN, elsewhere)
    runner.run_all(block for block in blocks(page) if (block.page, block.text.split()[0]) not in DRAWN)
    runs = [run for run in (folder / "runs").glob("*") if run.name != FOLDER]
    trials = [trial for run in runs for trial in RunResult(run).trial_records]
    for scheduler, decided in DECIDED.get(named(page), {}).items():
        assert any(decided(trial) for trial in trials if trial.scheduler == scheduler), scheduler


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_command_within_a_text_exists(page: Path) -> None:
    """With its options; options alone are some command's, or those of a program that the page names."""
    code = code_in_text(page)
    whole = [words_of(each) for each in code if is_command(each)]
    assert [missing for words in whole for missing in unknown(words)] == []
    known = options().union(PIP, *map(declared, whole))
    alone = [word for each in code if without_program(each) for word in each.split() if word.startswith("--")]
    assert [option for option in alone if option.partition("=")[0] not in known] == []


@pytest.mark.ray
@pytest.mark.slow
def test_the_first_commands_of_the_readme_run_as_processes(tmp_path: Path) -> None:
    """As they are typed, with Ray where a run is long enough, and with customers that can have no model."""
    shown = blocks(README)
    write_customers(tmp_path / "customers", customers=4)
    typed = commands(next(block for block in shown if block.language == "console" and "tuning init" in block.text))
    assert [command.words[1] for command in typed] == ["init", "plan", "run", "predict"]
    for command in typed:
        fewer = ["--set", "trials=2"] if command.words[1] == "run" else []
        words = [sys.executable, "-m", "tuning.cli", *command.words[1:], *fewer]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        expected = 3 if command.words[1] in ("run", "predict") else 0
        assert done.returncode == expected, f"{command}\n{done.stderr[-2000:]}"
    assert (tmp_path / "predicted" / "customer-01.csv").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        "curl localhost -d {nothing}",
        "make nothing",
        "pip install '.[nothing]'",
        "pip install -c nothing.txt .",
        "python -m benchmarks.nothing",
        "python -m benchmarks.throughput --nothing",
        "tuning nothing",
        "tuning mlflow nothing",
        "tuning run churn.yaml --nothing",
        "tuning run churn.yaml --progress nothing",
    ],
)
def test_what_is_not_there_is_found(wrong: str) -> None:
    (found,) = unknown(words_of(wrong))
    assert "nothing" in found


def test_the_readme_fits_a_few_screens_and_what_it_shows_a_terminal() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 900
    printed = [block.text.splitlines() for block in blocks(README) if block.language == "text"]
    assert [lines for lines in printed if len(lines) > 25 or max(map(len, lines)) > 80] == []


def test_output_may_differ_in_figures_names_and_rows_only() -> None:
    printed = "customer  score  trials\nacme  0.7  4\n\n2 of 3 customers have a model\nrecords  /tmp/runs/a/records"
    shown = ["customer   score  trials", "oslo         0.9      20", "…", "21 of 24 customers have a model"]
    assert not_printed([*shown, "records  …/records"], printed) == []
    wrong = ["customer  score  steps", "21 of 24 customers have a plan", "models  …/records"]
    assert not_printed(wrong, printed) == wrong
