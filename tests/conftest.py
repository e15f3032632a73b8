"""Shared by all tests: one Ray cluster per session, started by the first test that asks for it."""

from __future__ import annotations

import gc
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import paths
import pytest
from warm_children import WarmChild

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from s3_server import Bucket, S3Server

# Before anything imports Ray or MLflow: tests never use the developer's token, telemetry or tracking server.
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
for name in ("RAY_ADDRESS", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID"):
    os.environ.pop(name, None)


# Test processes share the cores: a thread of OpenMP that waits for another must not keep one busy meanwhile.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Folders of tests lie in memory where it has room: what is written there whole and durable waits for no disk.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# What a test needs is said by its folder, its file's name or its fixtures; `@pytest.mark` says only what they do not.
FOLDERS = {"ray/": "ray", "chaos/": "chaos", "services/test_mlflow": "mlflow"}
FIXTURES = {"ray_cluster": "ray", "mlflow_database": "mlflow", "s3_server": "s3"}
WARM = (
    "unit/",
    "runs/",
)  # a child process of the product has its libraries already; elsewhere it starts as a user's does


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make unit` gives the limit; elsewhere a slow machine fails nobody."""
    help = "a test fails that takes more seconds of this process's CPU, its fixtures left out"
    parser.addoption("--most-seconds", type=float, default=math.inf, help=help)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported here stays to the end: looking for garbage in it would take a quarter of this time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The process of Ray's tests alone need not load the files of all others, which takes seconds."""
    alone = config.option.markexpr.endswith("and ray")
    return True if alone and collection_path.name.startswith("test_") and not _says_ray(collection_path) else None


def _says_ray(path: Path) -> bool:
    return path.parent.name == "ray" or re.search(r"mark\.ray|ray_cluster|group_cluster", path.read_text()) is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = _place(item)
        needed = {marker for start, marker in FOLDERS.items() if place.startswith(start)}
        needed |= {marker for name, marker in FIXTURES.items() if name in getattr(item, "fixturenames", ())}
        for marker in needed:
            item.add_marker(marker)
    unsaid = {item.path.name for item in items if item.get_closest_marker("ray") and not _says_ray(item.path)}
    assert not unsaid, f"these would not be loaded beside the other tests of Ray: {unsaid}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    before, had_ray = time.process_time(), _ray_runs()
    result = yield
    used, most = time.process_time() - before, item.config.getoption("most_seconds")
    if _ray_runs() and not had_ray and not item.get_closest_marker("ray"):
        pytest.fail("it left Ray running in this process, where later tests would find a cluster; mark it as ray")
    if used > most:
        pytest.fail(f"it took {used:.1f} s; a test here has {most:g}. Make it smaller, or mark it as long")
    return result


def _ray_runs() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


def _place(node: pytest.Item | pytest.Module) -> str:
    return node.path.relative_to(Path(__file__).parent).as_posix()


@pytest.fixture(scope="module", autouse=True)
def warm_children(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if _place(request.node).startswith(WARM):
            child = SimpleNamespace(Popen=WarmChild, DEVNULL=subprocess.DEVNULL)
            patch.setattr("tuning.data.child_process.subprocess", child)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; what needs it is skipped where there is none (CI has one)."""
    folder = paths.shared_data()
    if folder is None:
        pytest.skip(f"no folder shared/data beside {paths.ROOT}, nor one level higher")
    return folder


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """A local cluster with two slots, a GPU as far as Ray knows, and a resource of its own."""
    import ray

    more = {"num_gpus": 1, "resources": {"fast_disk": 1}}
    settings = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
    ray.init(address="local", num_cpus=2, **more, **settings)
    yield
    ray.shutdown()


@pytest.fixture
def group_cluster(ray_cluster: None) -> Iterator[None]:
    """The same, for trials that several processes train: nothing of them may be left."""
    from worker_groups import left_over

    yield
    assert left_over() == {}


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs wait for their copy in MLflow, and keep them in forks, however slow this machine is.

    Only tests that are marked `ray` may start Ray.
    """
    from tuning.basics.timing import USUAL

    monkeypatch.setitem(vars(USUAL), "mlflow_closing_s", 3600.0)
    for wait in () if request.node.get_closest_marker("ray") else ("ray_start_s", "first_trial_s"):
        monkeypatch.setitem(vars(USUAL), wait, math.inf)


@pytest.fixture(scope="session", autouse=True)
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a run keeps in the user's cache folder, tests keep in a folder beside those of their sessions."""
    session = tmp_path_factory.getbasetemp()
    sessions = (session.parent if "PYTEST_XDIST_WORKER" in os.environ else session).parent
    os.environ["TUNING_CACHE"] = str(sessions / "tuning-cache")


@pytest.fixture(scope="session", autouse=True)
def config_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The code that tests have run is listed beside them, and not among the user's own."""
    os.environ["TUNING_CONFIG"] = str(tmp_path_factory.getbasetemp() / "tuning-config")


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new MLflow database, made once per session because it takes seconds: copy it, never write to it."""
    from tuning.tracking.stores.database import prepare

    path = tmp_path_factory.mktemp("mlflow") / "template.db"
    prepare(f"sqlite:///{path}")
    return path


@pytest.fixture
def mlflow_database(migrated_database: Path, tmp_path: Path) -> str:
    """The URI of an empty MLflow database of this test alone."""
    path = tmp_path / "mlflow.db"
    shutil.copy(migrated_database, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser, see tests/helpers/browser.py; of one file, as Playwright keeps an event loop going."""
    from browser import CHROMIUM, NO_CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server on loopback, see tests/helpers/s3_server.py."""
    from s3_server import S3Server

    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def bucket(s3_server: S3Server) -> Bucket:
    """A new, empty bucket of it."""
    return s3_server.bucket()
