"""A run works on the Ray cluster that is there. Where there is none, this process starts one and ends it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from tuning.basics.environment import environment_set, thread_environment
from tuning.basics.wording import is_served, one_line
from tuning.definition.cpus import cluster_nodes
from tuning.driver.signals import kept
from tuning.errors import RayUnavailableError, RunError
from tuning.planning.run_plan import Plan
from tuning.storage.data_roots import data_roots_environment

# Each slot has one thread: fits of a few milliseconds lose by more, and slots would fight for the cores. Libraries read
# these variables when they are loaded, so the variables must be there before a worker starts. The worker of a study
# that has more CPUs changes the number of threads (`tuning.models.compute`).
ONE_THREAD = thread_environment(1)
PRELOADED = "RAY_preload_python_modules"  # modules that each worker loads as soon as Ray starts it
OWN_RAY = {
    # Ray looks again for a place for a worker that died after so many milliseconds at most; its default is a second.
    "RAY_gcs_create_placement_group_retry_max_interval_ms": "200",
    # Workers load these modules before Ray puts the driver's current folder first in their import path, so a folder
    # there that is called numpy or tuning is not taken for the package. This process makes the Tuner meanwhile.
    PRELOADED: "tuning.execution.trainable,ray.tune",
    # The raylet asks for its own object store before the store is there, and asks again after so many milliseconds.
    # Ray's default is a second, in which nothing else starts.
    "RAY_raylet_client_connect_timeout_milliseconds": "20",
    "RAY_raylet_client_num_connect_attempts": "500",
}
# Tune wants workers to have these variables. Where all processes have them, Tune takes the processes that are there.
OF_TUNE = {"PL_DISABLE_FORK": "1", "RAY_CHDIR_TO_TRIAL_DIR": "0"}
CONNECTS_S = 2.0
LOOK_S = 0.01  # between two looks at processes that are to end


@dataclass
class OwnRay:
    """The Ray that this process has started.

    Attributes:
        processes: ids of the processes that this process has started for it; none while there is no such Ray.
        head: the address of what all processes of the Ray in use ask, be it a cluster's; empty without a Ray.
        environment: the variables that these processes have.
        over: set when this Ray has ended.
    """

    processes: set[int] = field(default_factory=set)
    head: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)


_own = OwnRay()


def start_ray(plan: Plan) -> bool:
    """Connect to the Ray that is there (or RAY_ADDRESS), else start one on this machine; True if one was started.

    A Ray that this process starts has a core for each of the plan's slots.
    """
    import ray

    if ray.is_initialized():
        return False
    if threading.current_thread() is threading.main_thread():
        return _start_ray(plan)
    started: Future[bool] = Future()
    threading.Thread(target=_start_and_stay, args=(plan, started), name="ray-parent", daemon=True).start()
    return started.result()


def _start_and_stay(plan: Plan, started: Future[bool]) -> None:
    """Start Ray in a thread that stays as long as this Ray does.

    Linux ends Ray's processes with the thread that has started them (PR_SET_PDEATHSIG). The thread of a run in the
    background ends with the run, and a later run goes on with the same Ray.
    """
    _own.over.clear()
    try:
        own = _start_ray(plan)
    except BaseException as error:  # raised where the run is
        started.set_exception(error)
        return
    started.set_result(own)
    if own:
        _own.over.wait()


def _start_ray(plan: Plan) -> bool:
    import ray

    before = _children()
    with kept(), _quieted("ray"):
        try:
            if address := os.environ.get("RAY_ADDRESS"):
                cluster_nodes(address)  # refuses at once where the cluster refuses the token
                ray.init(log_to_driver=False, runtime_env={"env_vars": ONE_THREAD | data_roots_environment()})
                _own.head = ray.get_runtime_context().gcs_address
                return False
            settings = OWN_RAY | OF_TUNE
            if plan.spec.definition.objective is None:
                settings[PRELOADED] += ",sklearn.model_selection"  # what all models need, and takes longest
            environment = {**unset(ONE_THREAD), **unset(settings), **_import_path()}
            with environment_set(environment), _tune_loaded_beside(), _on_loopback():
                started_with = dict(os.environ)
                ray.init(
                    address="local",  # else a cluster that somebody else runs on this machine would be joined
                    num_cpus=plan.slots,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    configure_logging=False,
                )
            _own.processes.update(_children() - before)
            _own.head = ray.get_runtime_context().gcs_address
            _own.environment.update(started_with)
            atexit.register(end_ray)
            return True
        except BaseException as error:
            _own.processes.update(_children() - before)
            end_ray()  # what there is of it
            if not isinstance(error, Exception) or isinstance(error, RunError):
                raise
            where = "cannot be reached at RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") else "did not start here"
            wrote = "" if is_served() else "; what Ray itself wrote is in /tmp/ray/session_latest/logs"
            raise RayUnavailableError(
                f"Ray {where}: {one_line(error)}. A machine that is busy or short of memory needs fewer `slots`{wrote}."
            ) from error


def restart_ray(plan: Plan) -> None:
    """End a Ray of this process whose machine is gone, and start another one."""
    end_ray()
    start_ray(plan)


def end_ray() -> None:
    """End the Ray that this process has started, if there is one.

    `ray.shutdown` sends SIGTERM to one process after the other, and waits a second for each. The processes do not
    notice: SIGTERM is blocked in them (`tuning.driver.signals.kept`). So this function kills each process that has the
    signal pending. It kills the workers, too: a worker that is still starting would notice late that its Ray is gone.
    """
    import ray

    _own.head = ""
    workers = {pid for pid in own_processes() if _of_ray(pid)}
    over = threading.Event()
    ender = threading.Thread(target=_end_who_is_asked, args=(over,), name="end-ray", daemon=True)
    ender.start()
    try:
        with contextlib.suppress(Exception):  # its machine is gone
            ray.shutdown()
    finally:
        over.set()
        ender.join()
        left = _own.processes & _children()  # Ray forgets these when it is stopped while it starts
        for pid in left | {pid for pid in workers if _of_ray(pid)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _own.processes.clear()
        _own.environment.clear()
        _own.over.set()
        atexit.unregister(end_ray)


def kill_ray() -> None:
    """Kill the Ray of this process at once: this process is about to end, and has no time for `end_ray`.

    Most of Ray's processes end with this one by themselves, but Ray's agents would look for it for a minute.
    """
    found = own_processes() | (_own.processes & _children())
    for pid in sorted(found, key=_own.processes.__contains__, reverse=True):  # first those that would start others
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def head_answers() -> bool:
    """Whether the head of the Ray in use takes connections; True without a Ray."""
    host, _, port = (head := _own.head).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECTS_S).close()
    except TimeoutError:  # it is busy
        return True
    except (OSError, ValueError):
        return head != _own.head or not head
    return True


def _end_who_is_asked(over: threading.Event) -> None:
    while not over.wait(LOOK_S):
        for pid in {pid for pid in _own.processes if _asked(pid)} & _children():
            _own.processes.discard(pid)
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)


def _asked(pid: int) -> bool:
    """Whether a process has a pending SIGTERM."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has ended, or this is not Linux
        return False
    pending = next((line.split()[1] for line in lines if line.startswith("ShdPnd:")), "0")
    return bool(int(pending, 16) & 1 << signal.SIGTERM - 1)


def _of_ray(pid: int) -> bool:
    """Whether a process is one of Ray's workers or agents. Another process may have its id by now."""
    command = _command(pid)
    return command.startswith(b"ray::") or b"/ray/" in command


def _command(pid: int) -> bytes:
    """A process's command line; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def own_environment() -> Mapping[str, str]:
    """The variables that the processes of this process's own Ray have; none where the run uses another Ray."""
    return _own.environment


def own_processes() -> set[int]:
    """The processes that this process's own Ray has started, its workers among them."""
    return {pid for parent in _own.processes for pid in _started_by(parent)}


def _children() -> set[int]:
    """The children of this process in its own process group. The copy to MLflow runs in a group of its own."""
    found = set()
    for pid in _started_by("self"):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            if os.getpgid(pid) == os.getpgrp():
                found.add(pid)
    return found


def _started_by(process: int | str) -> set[int]:
    """The children of a process; none where the system does not list them."""
    found: set[int] = set()
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found.update(map(int, file.read_text().split()))
    return found


@contextlib.contextmanager
def _on_loopback() -> Iterator[None]:
    """Have `ray.init` start a Ray that listens on loopback alone. It replaces a loopback address that it is given."""
    import ray.util

    asked = ray.util.get_node_ip_address
    ray.util.get_node_ip_address = lambda: "127.0.0.1"
    try:
        yield
    finally:
        ray.util.get_node_ip_address = asked


@contextlib.contextmanager
def _tune_loaded_beside() -> Iterator[None]:
    """Load Tune in a thread of its own while `ray.init` waits for other processes in the main thread."""
    loading = threading.Thread(target=_load_tune, name="load-tune", daemon=True)
    loading.start()
    try:
        yield
    finally:
        loading.join()


def _load_tune() -> None:
    with contextlib.suppress(Exception):  # whoever needs it says why
        import ray.tune  # noqa: F401  # for the time that it takes


@contextlib.contextmanager
def _quieted(name: str) -> Iterator[None]:
    """Let a logger show errors only. Ray's message on its tokens would interrupt the progress line."""
    loud = logging.getLogger(name)
    before = loud.level
    loud.setLevel(logging.ERROR)
    try:
        yield
    finally:
        loud.setLevel(before)


def _import_path() -> dict[str, str]:
    """The variable by which workers import this package, also where the package runs from its sources."""
    home = str(Path(__file__).resolve().parents[2])
    if Path(home).name in ("site-packages", "dist-packages"):
        return {}
    before = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys([home, *before]))}


def unset(values: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of `values` that the user has not set."""
    return {name: value for name, value in values.items() if name not in os.environ}
