"""Who asks is what a trusted proxy says: the limit of one person is no other's, and nobody else may say it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from served_folder import ServedFolder

PROXY, ELSEWHERE = "127.0.0.5", "127.0.0.1"  # addresses from which a test asks


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    keys = {"public_url": "http://tuning.example", "trusted_proxies": ["127.0.0.4/31"], "requests_per_minute": 3}
    (tmp_path / "service.yaml").write_text(yaml.safe_dump(keys))
    made = ServedFolder(tmp_path, "--config", str(tmp_path / "service.yaml"))
    yield made
    assert made.end() == 0


def statuses(served: ServedFolder, address: str, forwarded: str) -> list[int]:
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), base_url=served.url, timeout=60) as client:
        return [client.get("/login", headers={"X-Forwarded-For": forwarded}).status_code for _ in range(4)]


def test_people_behind_a_trusted_proxy_are_told_apart_and_others_are_not_believed(served: ServedFolder) -> None:
    assert statuses(served, PROXY, "10.0.0.1") == [200, 200, 200, 429]
    assert statuses(served, PROXY, "10.0.0.2") == [200, 200, 200, 429]
    assert statuses(served, ELSEWHERE, "10.0.0.3") == [200, 200, 200, 429]
    assert statuses(served, ELSEWHERE, "10.0.0.4") == [429] * 4
