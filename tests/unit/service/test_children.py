"""Child processes of the server end within their limits, and say what was wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from chaos import wait_for

from tuning.errors import RunError
from tuning.service.children import ChildLimits, run_child


def child(tmp_path: Path, code: str, limits: ChildLimits | None = None) -> tuple[int, bytes, str]:
    (tmp_path / "task.py").write_text(code)
    end = run_child("task", ["an argument"], {"PYTHONPATH": str(tmp_path)}, limits or ChildLimits())
    return end.code, end.output, end.reason


def test_it_gives_back_what_was_written_and_the_reason_of_an_error(tmp_path: Path) -> None:
    code = """
import json, sys
if sys.argv[1] == "an argument":
    json.dump({"reason": "trials: 0 is wrong. Use 1."}, sys.stdout)
print("note: x\\nerror: of a library", file=sys.stderr)
sys.exit(2)
"""
    code_, output, reason = child(tmp_path, code)
    assert (code_, json.loads(output)["reason"], reason) == (2, reason, "trials: 0 is wrong. Use 1.")
    assert child(tmp_path, "import sys; print('gone', file=sys.stderr); sys.exit(1)") == (1, b"", "gone")


@pytest.mark.long
def test_one_that_hangs_is_ended_with_its_own_children(tmp_path: Path) -> None:
    code = f"""
import subprocess, sys, time
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


def test_one_that_wants_more_memory_than_it_may_is_refused_it(tmp_path: Path) -> None:
    code = """
import resource
while resource.getrlimit(resource.RLIMIT_DATA)[0] != 2**30:
    pass  # the limit is set right after the process has started
bytearray(2 * 2**30)
"""
    assert child(tmp_path, code, ChildLimits(memory=2**30))[2] == "MemoryError"


def test_nothing_of_the_server_is_left_out_of_its_environment(tmp_path: Path) -> None:
    os.environ["SERVICE_TEST"] = "1"
    try:
        assert child(tmp_path, "import os; print(os.environ['SERVICE_TEST'])")[1] == b"1\n"
    finally:
        del os.environ["SERVICE_TEST"]
