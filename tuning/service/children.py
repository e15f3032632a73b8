"""Child processes of the server: what reads data or models, or runs code, does so there, within limits."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuning.basics.environment import import_environment
from tuning.basics.wording import duration
from tuning.errors import RunError
from tuning.service.settings import GB

MOST_SAID = 20_000  # bytes of stderr that are looked at, from its end
_REFUSED = "error: "  # how a command says what is wrong


@dataclass(frozen=True)
class ChildLimits:
    """What a child process may take: seconds of wall time, and bytes of memory for its data."""

    seconds: float = 300.0
    memory: int = 4 * GB


@dataclass(frozen=True)
class ChildEnd:
    """How a child process has ended. code: its exit code, output: what it wrote to stdout, said: to stderr."""

    code: int
    output: bytes
    said: str

    @property
    def sentence(self) -> str:
        """What a command says is wrong; else the last line of what it said."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        begun = [number for number, line in enumerate(lines) if line.startswith(_REFUSED)]
        if begun:
            return " ".join(lines[begun[-1] :]).removeprefix(_REFUSED)
        return lines[-1] if lines else f"it ended with {self.code} and said nothing"


def run_child(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], limits: ChildLimits = ChildLimits()
) -> ChildEnd:
    """Run `python -m MODULE ARGUMENTS` to its end.

    environment: beside this process's own. `RunError` when it takes longer than it may, or dies of its memory; its
    whole process group is ended then.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
        child = subprocess.Popen(  # noqa: S603 - this program's own modules, and no shell
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **import_environment(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=said,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(child.pid, resource.RLIMIT_DATA, (limits.memory, limits.memory))
            code = child.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise RunError(f"it took longer than {duration(limits.seconds)} and was ended.") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if code in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT):
            raise RunError(
                f"its process was ended by {signal.Signals(-code).name}: it may have needed more than "
                f"{limits.memory / GB:.0f} GB of memory."
            )
        output.seek(0)
        said.seek(max(0, said.seek(0, os.SEEK_END) - MOST_SAID))
        return ChildEnd(code, output.read(), said.read().decode("utf-8", "replace"))
