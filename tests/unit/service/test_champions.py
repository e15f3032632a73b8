"""Predictions by champions over HTTP: who answers, what stays in memory, and what a process that dies costs."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chaos import wait_for
from service_app import bearer
from starlette.testclient import TestClient

from tuning import RunResult, TuneRunner
from tuning.basics.documents import Json
from tuning.errors import MissingError
from tuning.models.customer_model import CustomerModel
from tuning.models.kept_models import OVERHEAD, KeptModels
from tuning.runs.prediction.models import ModelReader
from tuning.service import champions_child
from tuning.service.champions_child import ServedChampions
from tuning.service.child import answer
from tuning.service.service import Service
from tuning.serving.champion import champions_of, table_of
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases

FIELDS: dict[str, Any] = {
    "target": "y", "by": ["zone"], "trials": 1, "models": ["ridge"], "min_rows": 20, "name": "churn",
    "mlflow": False, "report": False, "portfolio": "none", "ensemble": "none",
}  # fmt: skip


def rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=80), "zone": np.repeat([1, 2], 40)})
    return frame.assign(y=2 * frame["a"] + 9 * (frame["zone"] == 1) + rng.normal(scale=0.1, size=80))


@pytest.fixture(scope="module")
def monday(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("storage") / "monday"
    return TuneRunner(data=rows(0), **FIELDS).run(folder, in_process=True, progress=False)


@pytest.fixture
def releases(monday: RunResult, tmp_path: Path) -> Releases:
    """Champions of the team `churn` with one release, where the server looks for them."""
    found = Releases("shops", tmp_path / "runs" / "churn")
    promote_run(monday, found)
    return found


def swapped(releases: Releases) -> None:
    """Another release, in which each customer has the other's model."""
    one, other = champions_of(releases.champions(releases.current()))
    found = [replace(one, customer=other.customer), replace(other, customer=one.customer)]
    releases.place(Release(2, 1, REFRESH), table_of(found))


@pytest.fixture
def served(releases: Releases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ServedChampions:
    """What a team's process has; a question is answered in a folder, and this process stays where it is."""
    monkeypatch.chdir(tmp_path)
    made = ServedChampions(releases.storage, 1 << 30)
    monkeypatch.setattr(champions_child, "served_champions", lambda *_: made)
    return made


def ask(folder: Path, text: str = "a,zone\n0.5,1\n0.5,2\n0.5,3\n") -> Mapping[str, Any]:
    """The answer to a question whose rows these are."""
    (folder / "rows.csv").write_text(text)
    values: Json = {
        "name": "shops",
        "folder": str(folder),
        "customer": None,
        "interval": None,
        "storage": "",
        "size": 0,
    }
    function = "tuning.service.champions_child:write_champions_predictions"
    return answer({"function": function, "values": {**values, "most": 10, "formulas": "keep"}})


def test_each_row_gets_what_serves_its_customer_in_the_newest_release(
    served: ServedChampions, releases: Releases, monday: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(champions_child, "LOOK_S", 0.0)
    assert ask(tmp_path) == {"made": None}
    found = pd.read_csv(tmp_path / "answer")
    assert list(found["answer"]) == ["own", "own", "constant"]
    assert list(found["release"]) == [1, 1, 1]
    new = pd.DataFrame({"a": [0.5], "zone": [1]})
    expected = [float(monday.model(name).predict(new)[0]) for name in ("1", "2")]
    assert list(found["prediction"][:2]) == pytest.approx(expected)
    swapped(releases)
    assert ask(tmp_path) == {"made": None}
    found = pd.read_csv(tmp_path / "answer")
    assert list(found["prediction"][:2]) == pytest.approx(expected[::-1])
    assert list(found["release"]) == [2, 2, 2]


def test_a_model_is_loaded_once(served: ServedChampions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(tmp_path) == {"made": None}
    monkeypatch.setattr(ModelReader, "saved", lambda *_, **__: pytest.fail("it was loaded before"))
    assert ask(tmp_path) == {"made": None}


def test_what_is_wrong_is_told_by_its_name(served: ServedChampions, tmp_path: Path) -> None:
    for text, code, said in (("a\n1\n", "data", "'zone'"), ("a,zone\n", "definition", "there are none")):
        told = ask(tmp_path, text=text)["error"]
        assert (told["code"], said in told["reason"]) == (code, True)


def test_models_that_nobody_asks_for_leave_the_memory_first() -> None:
    loaded: list[str] = []

    def load(name: str) -> CustomerModel:
        loaded.append(name)
        return CustomerModel(name, None, (), size=OVERHEAD)  # type: ignore[arg-type]  # nobody asks it

    kept = KeptModels(4 * OVERHEAD, load)
    for name in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(name).customer == name
    assert (loaded, len(kept)) == (["a", "b", "c", "b"], 2)


def test_champions_that_a_team_does_not_have_are_not_there(service: Service, releases: Releases) -> None:
    service.champions.check("churn", "shops")
    for team, name in (("credit", "shops"), ("churn", "others"), ("churn", "../churn/champions/shops")):
        with pytest.raises(MissingError, match="there are no champions called"):
            service.champions.check(team, name)


@pytest.mark.slow
def test_a_process_keeps_models_between_requests_and_another_follows_one_that_dies(
    web: TestClient, service: Service, releases: Releases, monday: RunResult, tmp_path: Path
) -> None:
    path, sent = "/api/v1/champions/shops/predictions", {"rows": [{"a": 0.5, "zone": 1}, {"a": 0.5, "zone": 3}]}
    try:
        for _ in range(2):
            found = web.post(path, json=sent, headers=bearer(service, name=str(os.urandom(4)))).json()
            assert [row["answer"] for row in found["rows"]] == ["own", "constant"]
            assert found["rows"][0]["prediction"] == pytest.approx(
                float(monday.model("1").predict(pd.DataFrame({"a": [0.5]}))[0])
            )
        (child,) = service.children._kept.values()
        os.kill(child.process.pid, signal.SIGKILL)
        wait_for(lambda: not child.fresh, what="the end of the process")
        headers = bearer(service, name="again")
        assert web.post(path, json=sent, headers=headers).status_code == 200
        wrong = web.post(path, json={"rows": [{"a": 0.5}]}, headers=headers)
        assert (wrong.status_code, "'zone'" in wrong.json()["detail"]) == (422, True)
        unknown = web.post(path, json=sent, headers=headers, params={"id": "9"}).json()
        assert [row["answer"] for row in unknown["rows"]] == ["constant", "constant"]
    finally:
        service.children.close()
