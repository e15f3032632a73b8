"""Shared by all tests: one Ray cluster per session, started by the first test that asks for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from s3_server import Bucket, S3Server

# Before anything imports Ray or MLflow: tests never use the developer's token, telemetry or tracking server.
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
for name in ("RAY_ADDRESS", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the checkout; what needs it is skipped where it is not."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "shared" / "data").is_dir():
            return folder / "shared" / "data"
    pytest.skip("no folder shared/data beside the checkout")


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """A local cluster with two slots."""
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


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
