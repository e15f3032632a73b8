"""What a customer's rows do to `prepare` before a run, a hang or the end of its process, costs nobody else anything."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shown_output import note_texts

from tuning.basics.timing import Timing
from tuning.data.child_process import PrepareProcess
from tuning.definition.definition import Definition, define
from tuning.errors import CustomerError, NotLookedAtError, PlanError
from tuning.planning.plan import make_plan
from tuning.planning.validation import check_customers

CODE = """
import os, sys, threading

def prepare(rows):
    name = rows["name"].iloc[0]
    if name == "exits":
        os._exit(3)
    if name == "crashes":
        os.abort()
    if name == "hangs":
        print("it hangs with a process of its own")
        os.fork() or threading.Event().wait()
        threading.Event().wait()
    if name == "raises":
        raise ValueError("no such rows")
    if name == "cannot be sent":
        return rows.assign(lock=[threading.Lock() for _ in range(len(rows))])
    breakpoint()
    return rows.assign(double=2 * rows["x"], parent=os.getppid())
"""


@pytest.fixture
def prepare(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(CODE)
    return f"{tmp_path / 'mine.py'}:prepare"


def rows(name: str, n: int = 40) -> pd.DataFrame:
    return pd.DataFrame({"name": name, "x": np.arange(float(n)), "y": ["no", "no", "yes", "no"] * (n // 4)})


def of(prepare: str, *odd: str, **fields: object) -> Definition:
    """Customers with odd names are the largest, which are looked at first."""
    data = {name: rows(name, 80) for name in odd} | {name: rows(name) for name in ("acme", "globex")}
    return define({"data": data, "target": "y", "drop": "name", "prepare": prepare, "trials": 2, **fields})


LOSSES = {
    "hangs": "prepare took longer than 1 s",
    "exits": r"prepare has ended its process \(exit code 3\)",
    "crashes": r"prepare has ended its process \(SIGABRT\)",
    "cannot be sent": "it cannot be passed to a process of its own: TypeError: cannot pickle",
}


def test_a_customer_is_lost_and_the_next_one_is_prepared(prepare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.data.child_process.subprocess", subprocess)  # children that load all by themselves
    with PrepareProcess(prepare, seconds=1.0) as process:
        with pytest.raises(CustomerError, match=r"^prepare failed: ValueError: no such rows$"):
            process.frame(rows("raises"), "raises")
        for number, (name, why) in enumerate(LOSSES.items(), start=1):
            with pytest.raises(NotLookedAtError, match=why):
                process.frame(rows(name), name)
            prepared = process.frame(rows("acme"), "acme")
            assert list(process.lost) == list(LOSSES)[:number]
            assert list(prepared["double"]) == list(2 * rows("acme")["x"])
            assert set(prepared["parent"]) == {os.getpid()}


def test_a_function_of_a_module_is_imported_as_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_rows.py").write_text("def first(rows):\n    return rows[:1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    with PrepareProcess("their_rows:first", seconds=60.0) as process:
        assert len(process.frame(rows("acme"), "acme")) == 1


def _but_sizes(notes: Iterable[str], *others: str) -> Iterator[str]:
    return (note for note in notes if not note.startswith("the data (") and note not in others)


def test_who_ends_the_process_has_no_say_and_the_others_plan_as_without_it(prepare: str) -> None:
    plan, without = make_plan(of(prepare, "exits")), make_plan(of(prepare))
    assert (plan.spec.task, plan.spec.positive, plan.spec.metric) == ("binary", "yes", without.spec.metric)
    assert [study.id for study in plan.studies] == ["acme", "exits", "globex"]
    lost = "customer 'exits' was not sampled: prepare has ended its process (exit code 3)."
    assert [*_but_sizes(note_texts(plan), lost)] == [*_but_sizes(note_texts(without))]
    assert lost in note_texts(plan)


def test_who_hangs_has_no_say(prepare: str) -> None:
    plan = make_plan(of(prepare, "hangs"), timing=Timing(prepare_s=1.0))
    assert plan.spec.positive == "yes"
    assert "customer 'hangs' was not sampled: prepare took longer than 1 s." in note_texts(plan)


def test_where_nobody_can_be_looked_at_the_task_has_to_be_given(prepare: str) -> None:
    data = {"one": rows("exits")}
    with pytest.raises(PlanError, match=r"no usable target 'y' .*'one': prepare has ended its process .* set `task`"):
        make_plan(of(prepare, data=data))
    plan = make_plan(of(prepare, data=data, task="binary"))
    assert len(plan.studies) == 1


def test_validation_names_who_ends_the_process_and_goes_on(prepare: str) -> None:
    plan = make_plan(of(prepare, "exits", task="binary"))
    refused = check_customers(plan, [study.customer for study in plan.studies])
    assert refused == {"exits": "prepare has ended its process (exit code 3)"}


def test_in_process_its_breakpoints_are_reached_before_the_run(prepare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.data.child_process.subprocess.Popen", None)
    reached = list[int]()
    monkeypatch.setattr("sys.breakpointhook", lambda: reached.append(os.getpid()))
    assert make_plan(of(prepare, "raises"), in_process=True).spec.positive == "yes"
    assert set(reached) == {os.getpid()}


def test_nothing_is_started_without_prepare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.data.child_process.subprocess.Popen", None)
    assert make_plan(define({"data": {"acme": rows("acme")}, "target": "y", "drop": "name"})).spec.positive == "yes"
