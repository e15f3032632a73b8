"""From where a request comes is what a trusted proxy says, and nobody else may say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from served_folder import ServedFolder

PROXY, ELSEWHERE = "127.0.0.5", "127.0.0.1"  # addresses from which a test asks


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    keys = {"public_url": "http://tuning.example", "trusted_proxies": ["127.0.0.4/31"]}
    (tmp_path / "service.yaml").write_text(yaml.safe_dump(keys))
    made = ServedFolder(tmp_path, "--config", str(tmp_path / "service.yaml"))
    yield made
    assert made.end() == 0


def test_a_trusted_proxy_says_in_the_log_who_asks_and_others_are_not_believed(served: ServedFolder) -> None:
    for address, said in ((PROXY, "10.0.0.1"), (PROXY, "10.0.0.2"), (ELSEWHERE, "10.0.0.3")):
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, base_url=served.url, timeout=60) as client:
            assert client.get("/login", headers={"X-Forwarded-For": said}).status_code == 200
    log = (served.folder / "served.txt").read_text()
    assert re.findall(r"GET /login 200 [0-9.]+ ms (\S+)", log) == ["10.0.0.1", "10.0.0.2", ELSEWHERE]
