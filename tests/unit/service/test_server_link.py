"""A server that is away, or that is not trusted, is told at once, and asked again where that may help."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuning.errors import DefinitionError, UnavailableError
from tuning.service import server_link
from tuning.service.client import TuningClient


def test_a_server_that_is_away_is_told_once_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_link, "PATIENCE_S", 0.2)
    heard = list[str]()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with TuningClient(address, token="t", say=heard.append) as client, pytest.raises(UnavailableError, match="Is `tun"):
        client.run("a")
    assert heard == [f"{address} does not answer; it is asked again for 0 s"]


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose certificate nobody has signed."""
    asked = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run([*asked, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        with listener.accept()[0] as connection, pytest.raises(OSError):
            context.wrap_socket(connection, server_side=True)

    thread = threading.Thread(target=greet)
    thread.start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    thread.join()
    listener.close()


def test_a_certificate_that_is_not_trusted_is_told_at_once_with_the_way_out(stranger: str) -> None:
    heard = list[str]()
    with TuningClient(stranger, token="t", say=heard.append) as client, pytest.raises(DefinitionError) as refused:
        client.run("a")
    assert "SSL_CERT_FILE" in str(refused.value)
    assert heard == []
