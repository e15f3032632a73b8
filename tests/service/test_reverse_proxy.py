"""The server behind nginx, set up as the page says: TLS, logging in, and streams that are not held back."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from chaos import wait_for
from pages import blocks
from paths import ROOT
from served_folder import ServedFolder

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


@dataclass(frozen=True)
class Proxied:
    """A server, and its address behind the proxy."""

    served: ServedFolder
    url: str
    tls: ssl.SSLContext

    @property
    def token(self) -> str:
        (token,) = json.loads((self.served.folder / "config" / "service-tokens.json").read_text()).values()
        return str(token)

    def asked(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self.tls, timeout=60)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("proxied")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    key, certificate = folder / "tuning.key", folder / "tuning.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    request += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(request, check=True, capture_output=True)
    url = f"https://localhost:{port}"
    served = ServedFolder(folder, "--public-url", url)
    (shown,) = (block.text for block in blocks(ROOT / "docs" / "reverse-proxy.md") if block.language == "nginx")
    for page, here in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "tuning.example": "localhost",
        "/etc/ssl/tuning.pem": str(certificate),
        "/etc/ssl/tuning.key": str(key),
        "http://127.0.0.1:8420": served.url,
    }.items():
        assert page in shown
        shown = shown.replace(page, here)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {places}\n{shown}}}\n"
    )
    nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        made = Proxied(served, url, ssl.create_default_context(cafile=certificate))
        with made.asked() as client:
            wait_for(lambda: _answers(client), 60, "the proxy's first answer")
        yield made
    finally:
        nginx.terminate()
        nginx.wait(30)
        assert served.end() == 0


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_login_gets_a_cookie_that_goes_by_tls_alone(proxied: Proxied) -> None:
    with proxied.asked() as client:
        sent = {"token": proxied.token, "next": "/"}
        refused = client.post("/login", data=sent, headers={"Origin": "https://elsewhere.example"})
        assert refused.status_code == 403
        answer = client.post("/login", data=sent, headers={"Origin": proxied.url})
        assert answer.status_code == 303, answer.text
        assert {"secure", "httponly"} <= {part.strip() for part in answer.headers["set-cookie"].split(";")}
        assert client.get("/").status_code == 200


def test_events_come_while_the_stream_is_open(proxied: Proxied) -> None:
    with proxied.served.client() as ours:
        run = ours.submit(proxied.served.definition, trials=300, name="streamed")
        with (
            proxied.asked() as client,
            client.stream(
                "GET", f"/api/v1/runs/{run.id}/events", headers={"Authorization": f"Bearer {proxied.token}"}
            ) as stream,
        ):
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("event:")) == "event: state"
            assert ours.run(run.id).state in ("queued", "running")  # the stream is open, and has told something
            run.cancel()
            assert any('"cancelled"' in line for line in lines)
