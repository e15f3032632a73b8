"""What the user's own model does to its process before a run is said in the plan, and stops nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_frame
from shown_output import note_texts

from tuning.basics.timing import Timing
from tuning.definition.definition import define
from tuning.errors import DefinitionError, PlanError
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan

CODE = """
import os, threading
from sklearn.linear_model import Ridge

class Exits(Ridge):
    def fit(self, X, y, sample_weight=None):
        os._exit(0)

class Hangs(Ridge):
    def fit(self, X, y, sample_weight=None):
        threading.Event().wait()

class IsNotBuilt(Ridge):
    def __init__(self):
        os._exit(0)

class IsNeverBuilt(Ridge):
    def __init__(self):
        threading.Event().wait()

class IsNotSaved(Ridge):
    def __reduce__(self):
        raise AttributeError("no way to write it down")
"""


def plan_of(folder: Path, *models: str, seconds: float = 60.0, in_process: bool = False, **fields: object) -> Plan:
    (folder / "mine.py").write_text(CODE)
    named = {name: f"{folder}/mine.py:{name}" for name in models}
    given = {"data": {"acme": make_frame()}, "target": "y", "task": "regression", "save_models": False, **fields}
    return make_plan(define({"models": named, **given}), timing=Timing(prepare_s=seconds), in_process=in_process)


def test_one_that_hangs_or_ends_its_process_is_a_note_and_the_run_has_it_all_the_same(tmp_path: Path) -> None:
    said = "the model {!r} could not be tried before the run: it {}."
    assert said.format("Exits", "has ended its process (exit code 0)") in note_texts(plan_of(tmp_path, "Exits"))
    hanging = plan_of(tmp_path, "Hangs", seconds=1.0)
    assert said.format("Hangs", "took longer than 1 s") in note_texts(hanging)
    assert hanging.spec.space.parameters[0].default == "Hangs"
    assert note_texts(plan_of(tmp_path, "Exits", in_process=True)) == note_texts(
        plan_of(tmp_path, "IsNotSaved", in_process=True)
    )


def test_one_that_cannot_be_built_or_saved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"'IsNotBuilt' cannot be built: SystemExit: os._exit\(0\) was called"):
        plan_of(tmp_path, "IsNotBuilt")
    with pytest.raises(
        PlanError, match=r"^models: 'IsNeverBuilt' cannot be built: building it took longer than 1 s\. It"
    ):
        plan_of(tmp_path, "IsNeverBuilt", seconds=1.0)
    with pytest.raises(PlanError, match=r"'IsNotSaved' cannot be saved: AttributeError: no way.*`save_models: false`"):
        plan_of(tmp_path, "IsNotSaved", save_models=True, allow_code=True)
