"""Child processes of the server end within their limits, and say what was wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from chaos import wait_for

from tuning.errors import NoModelError, RunError, UnavailableError, failure
from tuning.notes import EndCode
from tuning.service.children import ChildLimits, Children


def child(tmp_path: Path, code: str, limits: ChildLimits | None = None, **values: object) -> Any:
    """What `work` of a module with this code returns in a child process."""
    (tmp_path / "task.py").write_text(code)
    children = Children()
    try:
        return children.run(
            "task:work", values, environment={"PYTHONPATH": str(tmp_path)}, limits=limits or ChildLimits()
        )
    finally:
        children.close()


def test_it_gives_back_what_a_function_returns_and_the_error_that_it_raises(tmp_path: Path) -> None:
    code = """
from tuning.errors import NoModelError
from tuning.notes import EndCode

def work(customer):
    print("a model prints this")
    if customer is None:
        raise KeyError("gone")
    if customer == "none":
        why = EndCode.NOT_SAVED()
        raise NoModelError(EndCode.CUSTOMER_LACKS(customer, what="model", why=why))
    return {"customer": customer}
"""
    assert child(tmp_path, code, customer="a") == {"customer": "a"}
    with pytest.raises(RunError, match="KeyError: 'gone'"):
        child(tmp_path, code, customer=None)
    with pytest.raises(NoModelError) as raised:
        child(tmp_path, code, customer="none")
    note = EndCode.CUSTOMER_LACKS("none", what="model", why=EndCode.NOT_SAVED())
    assert failure(raised.value) == failure(NoModelError(note))


@pytest.mark.long
def test_one_that_hangs_is_ended_with_its_own_children(tmp_path: Path) -> None:
    code = f"""
import subprocess, sys, time

def work():
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    open({str(tmp_path / "pid")!r}, "w").write(str(other.pid))
    time.sleep(1000)
"""
    with pytest.raises(RunError, match="longer than"):
        child(tmp_path, code, ChildLimits(seconds=3.0))
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not _lives(pid), 30, "the end of its child")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_one_that_wants_more_memory_than_it_may_is_refused_it_and_one_that_dies_is_told(tmp_path: Path) -> None:
    code = """
import os

def work(size):
    return len(bytearray(size)) if size else os.abort()
"""
    with pytest.raises(RunError, match="MemoryError"):
        child(tmp_path, code, ChildLimits(memory=2**30), size=2 * 2**30)
    with pytest.raises(RunError, match="ended by SIGABRT: it may have needed more than 4 GB"):
        child(tmp_path, code, size=0)


def test_nothing_of_the_server_but_its_secrets_is_left_out_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TEST", "1")
    monkeypatch.setenv("PGPASSWORD", "secret")
    code = "import os\n\ndef work(names):\n    return [os.environ.get(name) for name in names]\n"
    assert child(tmp_path, code, names=["SERVICE_TEST", "PGPASSWORD"]) == ["1", None]


def test_none_is_started_when_the_server_ends(tmp_path: Path) -> None:
    children = Children()
    children.close()
    with pytest.raises(UnavailableError, match="the server is ending"):
        children.run("os:getcwd", {}, environment=dict(os.environ))
