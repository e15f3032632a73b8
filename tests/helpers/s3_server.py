"""An S3 server on loopback (moto in this process), whose answers can be made to fail.

def test_something(bucket: Bucket) -> None:
    directory = RunDirectory(s3.uri("runs/weekly"))
    s3.put("data/a.csv", b"x,y\\n1,2\\n")
    with bucket.server.failing(lambda call: call.method == "PUT", 503):
        ...
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tuning.storage.run_directory import RunDirectory
from tuning.storage.s3 import client

KEY, SECRET = "test-id", "test-secret"  # moto takes any
REGION = "us-east-1"
CODES = {403: "AccessDenied", 404: "NoSuchBucket", 500: "InternalError", 503: "SlowDown"}


@dataclass(frozen=True)
class Call:
    """One request. path: `/bucket/key`, as it stands in the request, without its query."""

    method: str
    path: str
    query: str = ""


class S3Server:
    """Serves until `close`; meanwhile the environment names credentials for it. calls: every request so far."""

    _numbers = itertools.count(1)  # of the process: what moto keeps is common to all its servers

    def __init__(self) -> None:
        pytest.importorskip("moto.server")
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
        from werkzeug.serving import make_server

        class Handler(MotoRequestHandler):
            def log(self, kind: str, message: str, *args: Any) -> None:
                """Quiet."""

        self._patch = pytest.MonkeyPatch()
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            self._patch.delenv(name)
        # boto3's own patience; ours, in tuning.storage.retrying, is what tests look at. (pyarrow's: see `impatient`.)
        environment = {"MAX_ATTEMPTS": "1", "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}
        environment |= {"DEFAULT_REGION": REGION, "EC2_METADATA_DISABLED": "true"}
        for name, value in environment.items():
            self._patch.setenv(f"AWS_{name}", value)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._writing = threading.Lock()
        self._fault: Callable[[Call], tuple[int, bool] | None] | None = None
        self.calls: list[Call] = []
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def query(self) -> str:
        """The part of a URI that leads to this server."""
        return f"?endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def bucket(self) -> Bucket:
        """A new, empty bucket."""
        made = Bucket(self, f"b-{next(self._numbers)}")
        made.client.create_bucket(Bucket=made.name)
        return made

    @contextlib.contextmanager
    def failing(
        self, which: Callable[[Call], bool], status: int, *, most: int = 10**9, done: bool = False
    ) -> Iterator[list[Call]]:
        """Answer the calls that `which` picks with an error instead; gives those calls.

        status: 403, 404, 500 or 503, or 0 for a connection that is cut. most: how many of them. done: what
        was asked for is done all the same, only its answer is lost.
        """
        failed: list[Call] = []

        def fault(call: Call) -> tuple[int, bool] | None:
            if len(failed) >= most or not which(call):
                return None
            failed.append(call)
            return status, done

        before, self._fault = self._fault, fault
        try:
            yield failed
        finally:
            self._fault = before

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._patch.undo()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        call = Call(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", ""))
        self.calls.append(call)
        fault = self._fault(call) if self._fault is not None else None
        if fault is None:
            return self._serve(call, environ, start)
        status, done = fault
        if done:
            self._serve(call, environ, lambda *_, **__: None)
        return _refuse(environ, start, status, done)

    def _serve(self, call: Call, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        # A look whether the object is there and its put are one step for S3, not for moto.
        with self._writing if call.method == "PUT" else contextlib.nullcontext():
            return list(self._app(environ, start))


def _refuse(environ: dict[str, Any], start: Callable[..., Any], status: int, done: bool) -> Iterable[bytes]:
    from werkzeug.wrappers import Request

    if status == 0:
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return []
    if not done:  # or the next request on this connection begins with the rest of this one
        Request(environ).get_data()
    content = f"<Error><Code>{CODES[status]}</Code><Message>injected</Message></Error>".encode()
    start(f"{status} injected", [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
    return [content] if environ["REQUEST_METHOD"] != "HEAD" else [b""]


@dataclass(frozen=True)
class Bucket:
    """One bucket of the server."""

    server: S3Server
    name: str

    def uri(self, path: str = "", *, credentials: bool = False) -> str:
        """The URI of a path or pattern in it, with what makes pyarrow go to this server."""
        who = f"{KEY}:{SECRET}@" if credentials else ""
        return f"s3://{who}{self.name}/{path}{self.server.query}"

    @property
    def client(self) -> Any:
        """A boto3 client."""
        return client(self.uri(credentials=True))

    def put(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=content)

    def get(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def names(self, prefix: str = "") -> list[str]:
        """All objects whose names begin with `prefix`, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def remove(self) -> None:
        """Delete everything in it, and the bucket."""
        for key in self.names():
            self.client.delete_object(Bucket=self.name, Key=key)
        try:
            self.client.delete_bucket(Bucket=self.name)
        except self.client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "BucketNotEmpty":
                raise
            self.remove()  # somebody has written meanwhile


def impatient(directory: RunDirectory) -> RunDirectory:
    """A run directory whose S3 client does not try again by itself, which takes it half a minute."""
    import pyarrow.fs

    directory.storage.filesystem = pyarrow.fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        region=REGION,
        scheme="http",
        endpoint_override=directory.uri.partition("endpoint_override=")[2].partition("&")[0],
        allow_delayed_open=True,
        retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=1),
    )
    return directory
