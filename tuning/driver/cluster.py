"""A run works on the Ray cluster that is there. Where there is none, this process starts one and ends it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import import_module
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
    PRELOADED: "tuning.execution.bridge,ray.tune",
    # The raylet asks for its own object store before the store is there, and asks again after so many milliseconds.
    # Ray's default is a second, in which nothing else starts.
    "RAY_raylet_client_connect_timeout_milliseconds": "20",
    "RAY_raylet_client_num_connect_attempts": "500",
}
# Tune wants workers to have these variables. Where all processes have them, Tune takes the processes that are there.
OF_TUNE = {"PL_DISABLE_FORK": "1", "RAY_CHDIR_TO_TRIAL_DIR": "0"}
CONNECTS_S = 2.0


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
    with kept():
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
            with environment_set(environment), _on_loopback():
                started_with = dict(os.environ)
                # Tune loads while `ray.init` waits for other processes.
                threading.Thread(target=import_module, args=("ray.tune",), name="load-tune", daemon=True).start()
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


def end_ray() -> None:
    """End the Ray that this process has started, if there is one.

    `ray.shutdown` waits a second for each process to end on SIGTERM, which is blocked in them
    (`tuning.driver.signals.kept`), so here it kills them. Workers are killed, too: one that is still starting would
    notice late that its Ray is gone.
    """
    import ray
    from ray._private import worker

    _own.head = ""
    workers = {pid for pid in own_processes() if _of_ray(pid)}
    if _own.processes and (node := worker._global_node) is not None:
        kill_all = node.kill_all_processes
        node.kill_all_processes = lambda **_: kill_all(check_alive=False)
    with contextlib.suppress(Exception):  # its machine is gone
        ray.shutdown()
    left = _own.processes & _children()  # Ray forgets these when it is stopped while it starts
    _kill([*left, *(pid for pid in workers if _of_ray(pid))])
    _own.processes.clear()
    _own.environment.clear()
    _own.over.set()
    atexit.unregister(end_ray)


def kill_ray() -> None:
    """Kill the Ray of this process at once: this process is about to end, and has no time for `end_ray`.

    Most of Ray's processes end with this one by themselves, but Ray's agents would look for it for a minute.
    """
    found = own_processes() | (_own.processes & _children())
    _kill(sorted(found, key=_own.processes.__contains__, reverse=True))  # first those that would start others


def _kill(processes: Iterable[int]) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def head_answers() -> bool:
    """Return whether the head of the Ray in use takes connections; True without a Ray."""
    host, _, port = (head := _own.head).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECTS_S).close()
    except TimeoutError:  # it is busy
        return True
    except (OSError, ValueError):
        return head != _own.head or not head
    return True


def _of_ray(pid: int) -> bool:
    """Return whether a process is one of Ray's workers or agents. Another process may have its id by now."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return False
    return command.startswith(b"ray::") or b"/ray/" in command


def own_environment() -> Mapping[str, str]:
    """Return the variables that the processes of this process's own Ray have; none where the run uses another Ray."""
    return _own.environment


def own_processes() -> set[int]:
    """Return the processes that this process's own Ray has started, its workers among them."""
    return {pid for parent in _own.processes for pid in _started_by(parent)}


def _children() -> set[int]:
    """Return the children of this process in its own process group. The copy to MLflow runs in a group of its own."""
    found = set()
    for pid in _started_by("self"):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            if os.getpgid(pid) == os.getpgrp():
                found.add(pid)
    return found


def _started_by(process: int | str) -> set[int]:
    """Return the children of a process; none where the system does not list them."""
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


def _import_path() -> dict[str, str]:
    """Return the variable by which workers import this package, also where the package runs from its sources."""
    home = str(Path(__file__).resolve().parents[2])
    if Path(home).name in ("site-packages", "dist-packages"):
        return {}
    before = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys([home, *before]))}


def unset(values: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of `values` that the user has not set."""
    return {name: value for name, value in values.items() if name not in os.environ}
