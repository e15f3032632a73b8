"""An address on loopback that counts who connects, and how it can be written."""

from __future__ import annotations

import socket


class Listener:
    """Counts who connects on loopback."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        self.port = self.server.getsockname()[1]

    def connections(self) -> int:
        count = 0
        while True:
            try:
                self.server.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1


def spellings(port: int) -> list[str]:
    """How the same address can be written."""
    hosts = (
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "①②⑦.⓪.⓪.①",
    )
    whole = [f"http://{host}:{port}/a.csv" for host in hosts]
    schemes = (
        "HTTP",
        "https",
        "ftp",
        "s3",
        "S3",
        "gs",
        "gcs",
        "abfs",
        "abfss",
        "hdfs",
        "viewfs",
        "file",
        "github",
        "webhdfs",
    )
    whole += [f"{scheme}://127.0.0.1:{port}/a.csv" for scheme in schemes]
    whole += [
        f"http:/127.0.0.1:{port}/a.csv",
        f"http:127.0.0.1:{port}/a.csv",
        f"//127.0.0.1:{port}/a.csv",
        f"\\\\127.0.0.1@{port}\\a.csv",
        f"http:\\\\127.0.0.1:{port}\\a.csv",
        f" http://127.0.0.1:{port}/a.csv",
        f"http\t://127.0.0.1:{port}/a.csv",
        f"http://user:password@127.0.0.1:{port}/a.csv",
        f"s3://bucket/a.csv?endpoint_override=127.0.0.1:{port}&scheme=http",
        f"s3://bucket@127.0.0.1:{port}/a.csv",
        f"simplecache::http://127.0.0.1:{port}/a.csv",
        f"zip://a.csv::http://127.0.0.1:{port}/a.zip",
        f"sqlite:////127.0.0.1:{port}/a.db",
        f"postgresql://127.0.0.1:{port}/a",
        f"http%3A%2F%2F127.0.0.1:{port}/a.csv",
        f"127.0.0.1:{port}/a.csv",
        f"file:///dev/tcp/127.0.0.1/{port}",
        f"/dev/tcp/127.0.0.1/{port}",
        f"dict://127.0.0.1:{port}/a",
        f"gopher://127.0.0.1:{port}/_a",
    ]
    return whole
