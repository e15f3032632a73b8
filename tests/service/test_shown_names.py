"""No answer and no page of a real server names a folder of it: files have the names of definitions, runs their ids."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from builders import write_customers
from chaos import wait_for
from httpx import Client, Response
from served_folder import ServedFolder

from tuning.service.states import RunState

COMMANDS = ("delete", "explain", "leaderboard", "predict", "report", "resume", "show")
RIDGE = {"target": "y", "metric": "r2", "search_space": "ridge", "trials": 2, "split": {"folds": 2}}
#: What teams send, by the state in which its run ends.
SENT: dict[str, tuple[dict[str, object], RunState]] = {
    "listed": ({"manifest": "list.csv", "schedule": "0 3 * * 1"}, RunState.FINISHED),
    "nothing": ({"data": "none/*.csv"}, RunState.FAILED),
}
PLANNED: list[dict[str, object]] = [
    {"data": "shops"},
    {"data": "table.csv", "by": "k"},
    {"data": "none/*.csv"},
    {"data": "shops", "target": "z"},
]
#: The customers of these runs of whom the model and the report are asked for; a process makes each.
EXTRACTED = {"listed": ("?id=link", "?id=gone", ""), "nothing": ("",)}
#: What the description of the API leaves out.
PAGES = (
    *("/", "/schedules", "/runs/new", "/plans/{plan}"),
    *("/runs/{run}", "/runs/{run}/customer", "/runs/{run}/pictures/{name}"),
)


def write_data(folder: Path, outside: Path) -> None:
    """Customers with a model, and all kinds of those who have none."""
    write_customers(folder / "shops", 2, rows=30)
    (folder / "shops" / "broken.csv").write_bytes(b"\xff\xfe\x00bad")
    (folder / "shops" / "few.csv").write_text("a,b,c,y\n1,2,3,4\n")
    (folder / "shops" / "other.csv").write_text("a,b\n1,2\n" * 20)
    outside.write_bytes((folder / "shops" / "c0000.csv").read_bytes())
    (folder / "shops" / "link.csv").symlink_to(outside)
    (folder / "table.csv").write_text("k,a,y\n" + "".join(f"{row % 2},{row},{row * 2}\n" for row in range(60)))
    listed = [*(path.stem for path in sorted((folder / "shops").iterdir())), "gone"]
    (folder / "list.csv").write_text("customer,path\n" + "".join(f"{name},shops/{name}.csv\n" for name in listed))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    write_data(tmp_path / "data", tmp_path / "outside.csv")
    made = ServedFolder(tmp_path, "--mlflow", "none", "--data", str(tmp_path / "data"), customers=0)
    yield made
    assert made.end() == 0


@pytest.mark.timeout(600)
def test_nothing_that_is_asked_for_names_a_folder_of_the_server(served: ServedFolder) -> None:
    runs = []
    with served.client() as ours:
        for name, (own, state) in SENT.items():
            run = ours.submit({**RIDGE, "name": name, **own}).wait(240)
            assert run.state is state, run.reason
            runs.append(run.id)
        (schedule,) = ours.schedules()
    (token,) = json.loads((served.folder / "config" / "service-tokens.json").read_text()).values()
    origin = {"Origin": served.url}
    with httpx.Client(base_url=served.url, timeout=60, headers=origin) as web:
        assert web.post("/login", data={"token": token, "next": "/"}).status_code == 303
        seen = {f"{template} {address}": content(web, address) for template, address in addresses(web, runs, schedule)}
        rows = {"rows": [{"a": 1.0, "b": 2.0, "c": 3.0}]}
        for customer in ("c0000", "link", "nobody"):
            asked = f"/api/v1/runs/{runs[0]}/predictions?id={customer}"
            seen[asked] = web.post(asked, json=rows).text
    for name, text in seen.items():
        found = re.search(f".{{0,99}}{re.escape(str(served.folder))}.{{0,99}}", text)
        assert found is None, f"{name}: {found and found[0]}"
        typed = re.search(rf"tuning (?:{'|'.join(COMMANDS)}) (?:run )?(?:{'|'.join(runs)})[^`]*", text)
        assert typed is None, f"{name}: {typed and typed[0]}"
    whole = "\n".join(seen.values())
    assert "table.csv" in whole
    assert "no file matches 'none/*.csv'" in whole


def addresses(web: Client, runs: list[str], schedule: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Template and address of all that can be asked for."""
    described = web.get("/api/v1/openapi.json").json()["paths"]
    plans = []
    for given in PLANNED:
        asked = web.post("/api/v1/plans", json={**RIDGE, **given}).json()
        wait_for(lambda asked=asked: made(web, asked), what="a plan")
        plans.append(asked["id"])
    for path in sorted({*PAGES, *(path for path, methods in described.items() if "get" in methods)}):
        if "{run}" in path:
            for name, run in zip(SENT, runs, strict=True):
                address = path.replace("{run}", run)
                if path.endswith("/leaderboard"):
                    yield from ((path, f"{address}?format={form}") for form in ("json", "csv", "parquet"))
                elif path.endswith("/{name}"):
                    yield path, address.replace("{name}", "picture-0.svg")
                elif path.endswith("/customer"):
                    customers = web.get(f"/api/v1/runs/{run}/leaderboard").json().get("rows", [])
                    known = [row["customer"] for row in customers if row["reason"]]
                    yield from ((path, f"{address}?id={customer}") for customer in (*known, "c0000"))
                    yield path, address
                elif path.endswith(("/model", "/report")):
                    yield from ((path, f"{address}{customer}") for customer in EXTRACTED[name])
                else:
                    yield path, address
        elif "{plan}" in path:
            yield from ((path, path.replace("{plan}", plan)) for plan in plans)
        else:
            yield path, path.replace("{schedule}", schedule["id"]).replace("{name}", "service.css")


def made(web: Client, asked: dict[str, dict[str, str]]) -> bool:
    return web.get(asked["links"]["self"]).json()["state"] in ("planned", "refused")


def content(web: Client, address: str) -> str:
    """All that is in an answer, as text."""
    answer: Response = web.get(address, headers={} if address.startswith("/api/") else {"Accept": "text/html"})
    if "parquet" in answer.headers.get("content-type", ""):
        return str(pq.read_table(io.BytesIO(answer.content)).to_pylist())
    if answer.headers.get("content-type") == "application/zip":
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return "".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())
    return unescape(answer.text)
