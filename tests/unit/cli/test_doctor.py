"""`tuning doctor` finds what stops a run, and says what to do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import pytest
from commands import tuning

from search_spaces.algorithms import registry
from tuning.cli import doctor, nodes
from tuning.cli.doctor import Finding
from tuning.definition.cpus import default_slots, usable_cpus
from tuning.models.registry import families


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_ray(_: str) -> Iterator[Finding]:
        yield Finding("ray", "ok", "not started here")

    monkeypatch.setattr(doctor, "_ray", no_ray)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)  # MLflow sets it where a program has set its own


def found(*options: str) -> dict[str, dict[str, str]]:
    answer = tuning("doctor", "--output", "json", *options)
    return {finding["name"]: finding for finding in json.loads(answer.stdout)}


@pytest.mark.long
def test_a_sound_machine_is_said_to_be_one_and_nothing_is_left(tmp_path: Path) -> None:
    findings = found()
    assert [name for name, finding in findings.items() if finding["state"] == "wrong"] == []
    assert findings["storage"]["said"].startswith("runs can be written and read")
    assert findings["mlflow"]["said"].startswith("a run's own database can be used")
    assert "ray 2." in findings["versions"]["said"]
    assert list(tmp_path.iterdir()) == []


def test_a_local_folder_called_like_a_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "schedulers.py").write_text("")
    answer = tuning("doctor")
    assert answer.exit_code == 1
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("wrong")]
    assert "schedulers.py in the current folder has the name of a package" in line


def test_a_storage_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    storage = found("--storage", "file/runs")["storage"]
    assert storage["state"] == "wrong"
    assert "could not be" in storage["said"]


def test_a_node_that_differs_is_named_with_each_difference_and_what_it_does_not_see() -> None:
    """That each node of a cluster is asked: tests/ray/test_cluster_recipe.py."""
    here = nodes.look_here([])
    there = here | {"python": "3.10.2", "xgboost": nodes.MISSING} | dict.fromkeys(("/srv", "/srv/runs/probe"), "")
    assert [*nodes.differences("10.0.0.2 (0a1b2c)", there, here)] == [
        f"10.0.0.2 (0a1b2c) has python 3.10.2, here it is {here['python']}",
        f"10.0.0.2 (0a1b2c) has xgboost (missing), here it is {here['xgboost']}",
        "10.0.0.2 (0a1b2c) does not see /srv",
        "10.0.0.2 (0a1b2c) does not see /srv/runs/probe",
    ]
    assert [*nodes.differences("10.0.0.3 (3d4e5f)", nodes.look_here([str(Path.cwd())]), here)] == []
    assert nodes.look_here(["/not/there"]) == here | {"/not/there": ""}


def test_where_no_head_is_named_the_slots_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("auto", "local", "ray://head:10001"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert default_slots() == usable_cpus()


def test_a_server_that_does_not_answer_stops_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:secret@127.0.0.1:9")
    mlflow = found()["mlflow"]
    assert mlflow["state"] == "wrong"
    assert "secret" not in str(mlflow)
    assert "tuning mlflow sync" in mlflow["advice"]


def test_little_memory_and_threads_that_compete_are_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.planning.capacity.free_memory", lambda: int(1e8))
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    findings = found()
    assert "set `slots: 1`" in findings["machine"]["advice"]
    assert "Unset it" in findings["threads"]["advice"]


def test_what_the_default_search_is_worth_without_two_extras_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "models" not in found()
    monkeypatch.setattr(type(families()["catboost"]), "missing", lambda _: "not here")
    models = found()["models"]
    assert models["state"] == "note"
    assert models["said"].startswith("catboost is not installed, and the default search does without: on 70 customers")


def test_only_extras_that_pip_knows_are_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("hebo", "cfo", "nevergrad"):
        monkeypatch.setattr(registry()[name], "installed", classmethod(lambda cls: False))
    advice = found()["extras"]["advice"]
    named = re.findall(r"tuning-service\[(.*?)\]", advice)[0].split(",")
    assert set(named) <= set(metadata("tuning-service").get_all("Provides-Extra") or ())
    assert {"flaml", "nevergrad"} <= set(named)
    assert "by hand, as docs/algorithms.md says: hebo" in advice
