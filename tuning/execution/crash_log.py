"""The trial each worker is running, so that a silent crash can be blamed on the right one.

A few bytes in a memory-mapped file cost a microsecond per trial, and the kernel keeps them when the process dies
without an exception (segmentation fault, `os._exit`, SIGKILL, out of memory). Next to it is a text file for what
Python's `faulthandler` writes when the process crashes. A worker that ends in order removes both.

Below a local run directory they lie in `in_progress/`. With object storage they lie in the node's temporary folder,
and a small object in `in_progress/` says on which node and where.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import socket
import struct
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from tuning.records.ownership import Term
from tuning.storage.run_directory import RunDirectory

FOLDER = "in_progress"
STATE = struct.Struct("<qq")  # position of the study in its batch, number of the trial
LOADED = struct.Struct("<d")  # seconds, after the state
HEADER = STATE.size + LOADED.size  # where the site is
SIZE = 4096
#: The position of a worker that has not come to its first study yet.
STARTING = -1
#: In place of a trial's number: the study's data is read, or its winner is refitted.
LOADING, CONCLUDING = -1, -2
FINAL_FITS = "the final fits"
STACK_CHARACTERS = 6000
#: Gives a file of a node, None where that cannot be had.
Fetch: TypeAlias = Callable[[str, str], bytes | None]


@dataclass(frozen=True)
class Site:
    """Where a worker is, or was: host and node (as Ray names it), and its file on that host."""

    host: str
    pid: int
    node: str
    path: str

    @property
    def stack(self) -> str:
        """The file for the stack at the crash."""
        return f"{self.path}.txt"

    @property
    def here(self) -> bool:
        """Whether that is this host."""
        return self.host == socket.gethostname()


@dataclass(frozen=True)
class Crash:
    """A worker that ended in the middle: in which study of its batch, which trial, and the stack at the crash.

    loading: seconds in which it had loaded its libraries, at most; infinite where nobody knows, or on another machine.
    """

    position: int
    trial: int
    stack: str = ""
    loading: float = math.inf

    @property
    def where(self) -> str:
        if self.trial == LOADING:
            return "reading its data"
        return FINAL_FITS if self.trial == CONCLUDING else f"trial {self.trial}"

    @property
    def timed_out(self) -> bool:
        """Whether a limit of time has ended it."""
        return self.stack.startswith("Timeout")

    @property
    def cause(self) -> str:
        """What is known of how the process ended, as part of a sentence."""
        if self.timed_out:
            return "it ran longer than its time limit"
        if "Fatal Python error: " in self.stack:
            return self.stack.split("Fatal Python error: ", 1)[1].splitlines()[0].strip().lower()
        return "its process ended without a trace (killed from outside, out of memory, or an exit in native code)"


class ProgressMarker:
    """Says where its worker is; a context manager that leaves nothing behind when it is left in order.

    of_helper: of a worker's helper: the worker knows what it is doing, and looks back at it itself (`stack_left`).
    """

    def __init__(
        self, directory: RunDirectory, term: Term, batch: int, node: str = "", *, of_helper: bool = False
    ) -> None:
        self._directory = directory
        self.name = f"{FOLDER}/{term.folder}/{_prefix(batch, of_helper=of_helper)}{uuid.uuid4().hex[:12]}"
        if directory.local:
            folder = Path(directory.path(self.name)).parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:  # a new folder: one with a name that others can guess could be somebody else's
            folder = Path(tempfile.mkdtemp(prefix=f"tuning-{term.folder}-"))
        path = folder / self.name.rsplit("/", 1)[-1]
        self.site = Site(socket.gethostname(), os.getpid(), node, str(path))
        header = json.dumps(asdict(self.site)).encode()
        content = STATE.pack(STARTING, LOADING) + LOADED.pack(math.inf) + header
        with open(path, "xb+") as file:  # written in full, so that the mapping can never hit a full disk
            file.write(content.ljust(SIZE, b"\0"))
            file.flush()
            self._map = mmap.mmap(file.fileno(), SIZE)
        self.stack = open(self.site.stack, "w+b", buffering=0)  # noqa: SIM115  # faulthandler writes to it to the end
        if not directory.local:
            directory.write(self.name, header)

    def __enter__(self) -> ProgressMarker:
        return self

    def __exit__(self, *exc: object) -> None:
        self._map.close()
        self.stack.close()
        Path(self.site.stack).unlink(missing_ok=True)
        Path(self.site.path).unlink(missing_ok=True)
        if not self._directory.local:
            Path(self.site.path).parent.rmdir()
            self._directory.remove(self.name)

    def at(self, position: int, trial: int = LOADING) -> None:
        """Note that the worker turns to a study of its batch, or to a trial of it."""
        STATE.pack_into(self._map, 0, position, trial)

    def loaded(self, seconds: float) -> None:
        """Note in how many seconds, at most, the worker has loaded its libraries; infinite while nobody knows."""
        LOADED.pack_into(self._map, STATE.size, seconds)


@dataclass
class Nodes:
    """What a worker can know of the cluster.

    name: of its own node. slots: how many workers like it share that. fetch: a file from another node, None when that
    cannot be had. lost: whether a node is gone.
    """

    name: str = ""
    slots: int = 1
    fetch: Fetch = lambda *_: None
    lost: Callable[[str], bool] = lambda _: False


ALONE = Nodes()  # in which nobody can look


def crashes(directory: RunDirectory, term: Term, batch: int, work: str, nodes: Nodes = ALONE) -> list[Crash]:
    """Return the workers that ended in the middle of a batch, in this term.

    work: the file of the function that works through a study; of several threads the one that is in it is shown. What
    ended with its node is nobody's fault.
    """
    found = []
    for _, site, content in _noted(directory, term, _prefix(batch)):
        if nodes.lost(site.node):
            continue
        state = content if directory.local else _look(site, site.path, nodes)
        if state is not None:
            position, trial = STATE.unpack_from(state)
            loading = LOADED.unpack_from(state, STATE.size)[0] if site.here else math.inf
            found.append(Crash(position, trial, _stack_at_crash(site, work, nodes), loading))
    return found


def _noted(directory: RunDirectory, term: Term, prefix: str = "") -> Iterator[tuple[str, Site, bytes]]:
    """Return (name, site, content) of the markers that are there. prefix: of their files' names."""
    for name in directory.list(f"{FOLDER}/{term.folder}"):
        if not name.rpartition("/")[2].startswith(prefix) or name.endswith(".txt"):
            continue
        try:
            content = directory.read(name)
        except OSError:
            continue
        yield name, Site(**json.loads(content[HEADER if directory.local else 0 :].rstrip(b"\0"))), content


def stack_left(directory: RunDirectory, name: str, site: Site, work: str, nodes: Nodes) -> str:
    """Return what a helper that has ended wrote at its end; its files are removed, as far as they can be.

    name: of its marker. work, nodes: see `crashes`.
    """
    stack = _stack_at_crash(site, work, nodes)
    _remove(directory, name, site)
    return stack


def forget_helpers(directory: RunDirectory, term: Term, batch: int) -> None:
    """Remove what helpers of a batch have noted, as far as that can be reached; all of them have ended."""
    for name, site, _ in _noted(directory, term, _prefix(batch, of_helper=True)):
        _remove(directory, name, site)


def forget(directory: RunDirectory, term: Term, pid: int) -> None:
    """Remove what a process of this machine has noted; it was ended on purpose."""
    for name, site, _ in _noted(directory, term):
        if site.here and site.pid == pid:
            _remove(directory, name, site)


def _remove(directory: RunDirectory, name: str, site: Site) -> None:
    directory.remove(name)
    if directory.local:
        directory.remove(f"{name}.txt")
    elif site.here:
        Path(site.stack).unlink(missing_ok=True)
        Path(site.path).unlink(missing_ok=True)


def _stack_at_crash(site: Site, work: str, nodes: Nodes) -> str:
    """Return what faulthandler wrote, of several threads the one that was in the file `work`."""
    text = (_look(site, site.stack, nodes) or b"").decode(errors="replace").partition("\nExtension modules:")[0]
    head, *threads = re.split(r"^(?=(?:Current thread|Thread) )", text, flags=re.MULTILINE)
    inside = os.sep.join(Path(work).parts[-3:])  # another machine may have the package in another place
    mine = [thread for thread in threads if inside in thread]
    return (head + "".join(mine or threads)).strip()[:STACK_CHARACTERS]


def _prefix(batch: int, *, of_helper: bool = False) -> str:
    return f"{'h' if of_helper else 'b'}{batch:05d}-"


def _look(site: Site, path: str, nodes: Nodes) -> bytes | None:
    if site.here and os.path.exists(path):
        return Path(path).read_bytes()
    return nodes.fetch(site.node, path)


def ray_nodes() -> Nodes:
    """Return the cluster as a worker sees it."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def read(path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def fetch(node: str, path: str) -> bytes | None:
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        task = ray.remote(read).options(num_cpus=0, scheduling_strategy=strategy, max_retries=0)
        try:
            content: bytes | None = ray.get(task.remote(path), timeout=30)
        except Exception:  # the node is going away
            return None
        return content

    def lost(node: str) -> bool:
        return node not in {each["NodeID"] for each in ray.nodes() if each["Alive"]}

    name = ray.get_runtime_context().get_node_id()
    cpus = next((each["Resources"].get("CPU", 1) for each in ray.nodes() if each["NodeID"] == name), 1)
    own = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    return Nodes(name, max(1, int(cpus / own)), fetch, lost)
