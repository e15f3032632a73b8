"""Two drivers on one machine, each with a Ray of its own: neither knows of the other."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import definition, write_customers
from chaos import environment, truth
from listening import listening, open_files

from tuning import RunResult, TuneRunner

QUIET = {"progress": False, "in_process": True}
LOOK_S, ROUNDS = 0.3, 4
_WRITES = os.O_WRONLY | os.O_RDWR


@dataclass
class Seen:
    """What was seen of a driver while it ran. busy: the most actors of Tune that there were at once."""

    ports: set[int] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    busy: int = 0

    def look(self, root: int) -> None:
        pids = tree(root)
        self.ports |= {port for _, port in listening(pids)}
        self.files |= written_files(pids)
        said = [command(pid) for pid in pids]
        self.busy = max(self.busy, sum(each.startswith(b"ray::ImplicitFunc") for each in said))


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tuning.cli", "run", f"{name}.yaml", "--run-dir", name, "--resume"]
    words += ["--progress", "jsonl", "--output", "json"]
    with (folder / f"{name}.err").open("wb") as err, (folder / f"{name}.out").open("wb") as out:
        return subprocess.Popen(words, cwd=folder, env=environment(), stdout=out, stderr=err)


def at_once(folder: Path, names: list[str]) -> dict[str, Seen]:
    """Run definitions at once to their ends, looked at all the time."""
    drivers = {name: start(folder, name) for name in names}
    seen = {name: Seen() for name in names}
    while any(driver.poll() is None for driver in drivers.values()):
        for name, driver in drivers.items():
            if driver.poll() is None:
                seen[name].look(driver.pid)
        time.sleep(LOOK_S)
    for name, driver in drivers.items():
        assert driver.returncode == 0, (folder / f"{name}.err").read_text()[-3000:]
    return seen


def write(folder: Path, name: str, **fields: Any) -> dict[str, Any]:
    given = definition(folder / "data", trials=3, slots=1, **fields)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(given))
    return given


@pytest.mark.slow
def test_two_runs_at_once_share_nothing_and_find_what_each_finds_alone(tmp_path: Path) -> None:
    """Of 200 customers each, on Ray; alone they run in this process, whose records are those of every placement."""
    write_customers(tmp_path / "data", 200)
    given = {name: write(tmp_path, name, seed=seed) for name, seed in (("one", 1), ("two", 2))}
    seen = at_once(tmp_path, [*given])
    assert seen["one"].ports
    assert seen["one"].ports & seen["two"].ports == set()
    assert seen["one"].files & seen["two"].files == set()
    assert {name: found.busy for name, found in seen.items()} == {"one": 1, "two": 1}
    for name, fields in given.items():
        alone = TuneRunner(fields).run(tmp_path / f"{name}-alone", **QUIET)
        assert truth(RunResult(tmp_path / name)) == truth(alone)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_runs_at_once_are_those_of_the_same_commands_one_after_the_other(tmp_path: Path) -> None:
    """Two with Ray and two without, several times, since Ray's start looks for free ports."""
    write_customers(tmp_path / "data", 200)
    kinds = {"packed": "packed", "forked": "auto"}
    for kind, placement in kinds.items():
        write(tmp_path, kind, placement=placement, mlflow=True)
        at_once(tmp_path, [kind])
    for number in range(ROUNDS):
        names = [f"{kind}{number}{which}" for kind in kinds for which in "ab"]
        for name in names:
            write(tmp_path, name, placement=kinds[name[:6]], mlflow=True)
        seen = at_once(tmp_path, names)
        found = [each.ports for each in seen.values()]
        assert len(set().union(*found)) == sum(map(len, found))
        for name in names:
            assert truth(RunResult(tmp_path / name)) == truth(RunResult(tmp_path / name[:6]))


def tree(root: int) -> set[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, before = {root}, set[int]()
    while found != before:
        before = set(found)
        found |= {pid for pid, parent in parents.items() if parent in before}
    return found


def written_files(pids: set[int]) -> set[str]:
    """The files that processes have open to write into, without devices, pipes and what is deleted already."""
    found = set()
    for pid in pids:
        for descriptor, target in open_files(pid).items():
            if target.startswith("/") and not target.startswith("/dev/") and not target.endswith(" (deleted)"):
                with contextlib.suppress(OSError, ValueError):
                    lines = Path("/proc", str(pid), "fdinfo", descriptor).read_text().splitlines()
                    if int(lines[1].split()[1], 8) & _WRITES:
                        found.add(target)
    return found


def command(pid: int) -> bytes:
    """A process's command line, which Ray sets to what it does; empty when it has ended."""
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return b""
