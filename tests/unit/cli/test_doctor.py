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
from tuning.cli import doctor
from tuning.cli.doctor import Finding
from tuning.definition.cpus import default_slots, usable_cpus
from tuning.errors import RayUnavailableError


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_ray() -> Iterator[Finding]:
        yield Finding("ray", "ok", "not started here")

    monkeypatch.setattr(doctor, "_ray", no_ray)
    monkeypatch.chdir(tmp_path)


def found() -> dict[str, dict[str, str]]:
    answer = tuning("doctor", "--output", "json")
    return {finding["name"]: finding for finding in json.loads(answer.stdout)}


def test_a_sound_machine_is_said_to_be_one_and_nothing_is_left(tmp_path: Path) -> None:
    findings = found()
    assert [name for name, finding in findings.items() if finding["state"] == "wrong"] == []
    assert "ray 2." in findings["versions"]["said"]
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_too_old_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "requires", lambda _: ["click>=99", "made-up>=1; extra == 'none'"])
    answer = tuning("doctor")
    assert answer.exit_code == 1
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("wrong")]
    assert "needed: click>=99 (found" in line


def test_a_node_that_differs_is_named_with_each_difference() -> None:
    """That each node of a cluster is asked: tests/ray/test_cluster_recipe.py."""
    here = doctor.versions()
    there = here | {"python": "3.10.2", "xgboost": doctor.MISSING}
    assert [*doctor.differences("10.0.0.2 (0a1b2c)", there)] == [
        f"10.0.0.2 (0a1b2c) has python 3.10.2, here it is {here['python']}",
        f"10.0.0.2 (0a1b2c) has xgboost (missing), here it is {here['xgboost']}",
    ]
    assert [*doctor.differences("10.0.0.3 (3d4e5f)", here)] == []


def test_a_ray_that_does_not_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Iterator[Finding]:
        raise RayUnavailableError("Ray does not answer")

    monkeypatch.setattr(doctor, "_ray", refused)
    assert (found()["ray"]["state"], found()["ray"]["said"]) == ("wrong", "Ray does not answer")


def test_where_no_head_is_named_the_slots_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("auto", "local", "ray://head:10001"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert default_slots() == usable_cpus()


def test_little_memory_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.planning.capacity.free_memory", lambda: int(1e8))
    assert "set `slots: 1`" in found()["machine"]["advice"]


def test_only_extras_that_pip_knows_are_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("hebo", "cfo", "nevergrad"):
        monkeypatch.setattr(registry()[name], "installed", classmethod(lambda cls: False))
    advice = found()["extras"]["advice"]
    named = re.findall(r"tuning-service\[(.*?)\]", advice)[0].split(",")
    assert set(named) <= set(metadata("tuning-service").get_all("Provides-Extra") or ())
    assert {"flaml", "nevergrad"} <= set(named)
    assert "by hand, as docs/algorithms.md says: hebo" in advice
