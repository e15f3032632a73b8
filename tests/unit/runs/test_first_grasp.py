"""What somebody reaches for who knows other tools is there, or its message says what is."""

from __future__ import annotations

import re
from operator import attrgetter

import pandas as pd
import pytest
from builders import tuner_of
from paths import ROOT

from tuning import RunResult, TuneRunner
from tuning.basics.public import Public
from tuning.driver.background import RunHandle
from tuning.errors import UnknownCustomerError
from tuning.runs.customer_result import CustomerResult

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    frame = pd.DataFrame({"shop": ["a", "b", "c"]})
    runner = tuner_of(lambda config: config["x"], data=frame, by="shop", trials=1, report=False)
    return runner.run(tmp_path_factory.mktemp("grasped") / "run", progress=False, in_process=True)


def test_a_result_has_a_length_and_its_customers(result: RunResult) -> None:
    assert len(result) == 3
    assert [*result] == ["a", "b", "c"]
    assert result["b"].customer == "b"
    assert "b" in result
    assert "d" not in result
    with pytest.raises(UnknownCustomerError, match="no customer 'd'"):
        result["d"]


@pytest.mark.parametrize("name", ["best_params", "best_score", "best_model", "plot", "predict_proba", "best_trial"])
def test_a_name_of_another_tool_says_ours(result: RunResult, name: str) -> None:
    for each in (result, result["a"]):
        if name in type(each).elsewhere:
            with pytest.raises(AttributeError, match=rf"has no '{name}'. Here it is \w+"):
                getattr(each, name)
    assert name in RunResult.elsewhere
    with pytest.raises(AttributeError, match="Did you mean 'leaderboard'"):
        attrgetter("leaderbord")(result)


def test_a_runner_has_no_fit_and_says_run() -> None:
    with pytest.raises(AttributeError, match=r"a TuneRunner has no 'fit'. Here it is run\(\)\."):
        attrgetter("fit")(TuneRunner(data="x.csv", target="y"))


@pytest.mark.parametrize("kind", [RunResult, CustomerResult, TuneRunner, RunHandle])
def test_what_tab_shows_is_on_the_page(kind: type[Public]) -> None:
    where = rf"autoclass:: \S*\b{kind.__name__}\(.*?\n   :members: ((?:.+\n)+)"
    found = re.search(where, PAGE)
    assert found is not None
    fields = {"directory", "customer", "study", "params", "reason", "trial_records", "definition"}  # said in its text
    assert set(re.findall(r"\w+", found[1])) - set(kind.public) == set()
    assert set(kind.public) - set(re.findall(r"\w+", found[1])) <= fields


def test_tab_shows_no_internals(result: RunResult) -> None:
    shown = [name for name in dir(result) if not name.startswith("_")]
    assert set(shown) == set(RunResult.public)
    assert all(hasattr(result, name) for name in shown)
    assert {"explained", "facts", "best_trials"}.isdisjoint(dir(result["a"]))


def test_an_error_within_a_property_keeps_its_words(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: RunResult) -> str:
        raise AttributeError("of something else")

    monkeypatch.setattr(RunResult, "notes", property(broken))
    with pytest.raises(AttributeError, match="of something else"):
        _ = result.notes


def test_an_editor_that_completes_by_jedi_shows_the_same(result: RunResult) -> None:
    jedi = pytest.importorskip("jedi")
    found = {each.name for each in jedi.Interpreter("result.", [{"result": result}]).complete()}
    assert {name for name in found if not name.startswith("_")} == set(RunResult.public)
