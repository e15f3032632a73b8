"""The process that holds a driver: it outlives the server, and whoever comes later learns from it how the driver ended.

    python -I -S launcher.py FOLDER RAY_FOLDER HOST MACHINE COMMAND…

It starts COMMAND in FOLDER, in a session of its own, writes who both are into `launcher.json`, and into `exit.json` how
the driver has ended: its exit code and the object that it has printed, which is in memory until then, as a disk may be
full. Of several that are started in one folder the first alone goes on, and a driver begins only when `launcher.json`
names it, so that none works unseen. What the driver leaves behind is ended, such as processes of Ray, and deleted:
RAY_FOLDER, in which Ray's files are for this user alone. It is empty where the driver starts no Ray.
Only the standard library is imported, so that it costs few milliseconds and megabytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping

LAUNCHER, EXIT, LOG = "launcher.json", "exit.json", "log.txt"  # in FOLDER
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the driver become children of this process
LEFT_BEHIND_S = 5.0  # for which they may end by themselves
LOOK_S = 0.05
FULL_DISK_S = 600.0  # for which the end is written again and again, where somebody may still look for it


def main(folder: str, ray_folder: str, host: str, machine: str, *command: str) -> int:
    """Returns the driver's exit code, negative for the signal that killed it."""
    os.chdir(folder)
    if ray_folder:
        os.environ["RAY_TMPDIR"] = ray_folder
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    ready, go = os.pipe()
    output = os.memfd_create("stdout")
    driver = os.fork()
    if driver == 0:
        os.close(go)
        _become_driver(ready, output, command)
    os.close(ready)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        processes = {
            name: {"host": host, "pid": pid, "machine": machine, "started": started_at(pid)}
            for name, pid in (("launcher", os.getpid()), ("driver", driver))
        }
        _write(LAUNCHER, processes, os.link)
    except FileExistsError:  # another one was quicker
        return 0
    if ray_folder:
        _delete(ray_folder)  # of an earlier driver of the run, after its launcher was killed
        os.mkdir(ray_folder, 0o700)
    with contextlib.suppress(BrokenPipeError):  # it was killed meanwhile
        os.write(go, b"1")
    os.close(go)
    code = os.waitstatus_to_exitcode(os.waitpid(driver, 0)[1])
    end_orphans(LEFT_BEHIND_S if code >= 0 else 0.0)
    _delete(ray_folder)
    until = time.monotonic() + FULL_DISK_S
    while True:
        try:
            _write(EXIT, {"code": code, "ended": time.time(), "told": _printed_object(output)}, os.replace)
        except OSError:
            if time.monotonic() > until or _is_deleted():
                return code
            time.sleep(1.0)
        else:
            return code


def _is_deleted() -> bool:
    """Whether the folder in which it works is gone."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _delete(folder: str) -> None:
    if os.path.lexists(folder):
        from shutil import rmtree  # its import takes longer than all others

        rmtree(folder, ignore_errors=True)


def _printed_object(output: int) -> object:
    """What the driver has said of its end; None where it was killed before."""
    try:
        return json.loads(os.pread(output, os.fstat(output).st_size, 0))
    except ValueError:
        return None


def _become_driver(ready: int, output: int, command: tuple[str, ...]) -> None:
    """Wait until somebody knows of this process; end with the launcher if it dies before."""
    try:
        os.setsid()
        if os.read(ready, 1) != b"1":
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, stream in enumerate((nothing, output, log)):
            os.dup2(stream, number)
        os.execv(command[0], command)  # noqa: S606  # a program by its path, without a shell
    finally:
        os._exit(1)


def end_orphans(patience_s: float) -> None:
    """End all that the driver has left behind: wait for it, then kill it."""
    until = time.monotonic() + patience_s
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            continue
        if time.monotonic() >= until:
            for pid in children():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)


def children() -> list[int]:
    """The processes that this one is the parent of."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in numbers if _stat(pid)[1:2] == [str(os.getpid())]]


def started_at(pid: int) -> int:
    """The start of a process in kernel ticks, as `records.ownership.Owner` has it; 0 of one that is gone."""
    found = _stat(pid)
    return int(found[19]) if found else 0


def _stat(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []


def _write(name: str, content: Mapping[str, object], place: Callable[[str, str], object]) -> None:
    """Write a file whole: `place` gives the finished draft its name."""
    draft = f"{name}.{os.getpid()}"
    try:
        with open(draft, "w") as stream:
            json.dump(content, stream)
            stream.flush()
            os.fsync(stream.fileno())
        place(draft, name)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


if __name__ == "__main__":
    sys.exit(max(0, main(*sys.argv[1:])))
