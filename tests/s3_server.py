"""An S3-compatible server on loopback, for tests: moto in a thread of this process, on a port of its own."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

KEY, SECRET = "test-id", "test-secret"


@dataclass(frozen=True)
class Bucket:
    """An empty bucket. client: of boto3."""

    name: str
    port: int
    client: Any

    def uri(self, path: str, *, credentials: bool = False) -> str:
        """The URI of a path or pattern in it, with what makes pyarrow go to this server."""
        who = f"{KEY}:{SECRET}@" if credentials else ""
        return f"s3://{who}{self.name}/{path}?endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def put(self, path: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=path, Body=data)

    def names(self) -> list[str]:
        """All objects in it."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]


@contextlib.contextmanager
def s3_server() -> Iterator[int]:
    """The server's port; the environment names credentials for it while it is there."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server.start()
        try:
            yield server.get_host_and_port()[1]
        finally:
            server.stop()


def make_bucket(port: int, name: str) -> Bucket:
    """A new bucket; the name is unique in the session."""
    import boto3

    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
    client.create_bucket(Bucket=name)
    return Bucket(name, port, client)
