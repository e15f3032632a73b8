"""A run's winners become champions, and nobody gets a model that is worse than knowing nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from shops import run_of, write_shops

from tuning import RunResult
from tuning.data.customers import Customer
from tuning.errors import PlanError, RunError
from tuning.models.customer_model import CustomerModel, load_model
from tuning.notes import texts
from tuning.serving.champion import CONSTANT, HERE, NONE, OWN, POOL, Champion, champions_of
from tuning.serving.models import ReleaseModels
from tuning.serving.promoting import promote_run
from tuning.serving.releases import Releases
from tuning.study.customer_data import CustomerData


def promoted(storage: Path, run: str = "monday") -> dict[str, Champion]:
    releases = Releases("shops", storage)
    promote_run(RunResult(storage / run), releases)
    return {each.customer: each for each in champions_of(releases.champions(releases.current()))}


def model_of(storage: Path, champion: Champion) -> CustomerModel:
    directory = Releases("shops", storage).run_directory(champion.run)
    assert champion.model_path is not None
    return load_model(directory, champion.model_path, champion.model_sha256)


def test_each_customer_gets_its_winner_or_what_knows_less_with_the_reason(storage: Path) -> None:
    found = promoted(storage)
    assert {name: champion.answer for name, champion in found.items()} == {
        "good": OWN,
        "well": OWN,
        "turned": CONSTANT,
        "odd": CONSTANT,
        "few": CONSTANT,
        "text": NONE,
    }
    assert "is worse than a constant on the hold-out rows (rmse " in texts(found["turned"].reason)
    assert texts(found["few"].reason).startswith(
        "the mean of the target; no model: 4 rows with a target, fewer than min_rows"
    )
    assert texts(found["text"].reason).startswith("no model: ")
    assert "there is no constant either" in texts(found["text"].reason)
    new = pd.DataFrame({"x": [0.0, 1.0], "z": [1.0, 1.0], "day": [70, 71]})
    assert model_of(storage, found["few"]).predict(new).tolist() == [4.0, 4.0]
    assert model_of(storage, found["few"]).predict(pd.DataFrame({"other": [1]})).tolist() == [4.0]
    assert len(set(model_of(storage, found["turned"]).predict(new))) == 1
    own = RunResult(storage / "monday")
    last = own.leaderboard().sort_values("gain_over_constant")["customer"][:2]
    assert {*last} == {"turned", "odd"}
    assert model_of(storage, found["good"]).predict(new).tolist() == own.model("good").predict(new).tolist()


def test_a_champion_says_where_it_is_from_and_what_its_hold_out_promised(storage: Path) -> None:
    found = promoted(storage)
    record = RunResult(storage / "monday")["good"].study
    assert record is not None
    good = found["good"]
    assert (good.run, good.study, good.rows, good.since, good.searched) == ("../../monday", "good", 60, 1, 1)
    assert good.score == pytest.approx(record.test_score)
    assert good.digest
    assert found["few"].run == HERE
    assert found["few"].score is None


def test_the_same_again_makes_no_release(storage: Path) -> None:
    first = promoted(storage)
    assert promoted(storage) == first
    assert Releases("shops", storage).numbers() == [1]


def test_the_next_run_adds_and_replaces_champions_and_leaves_others_alone(storage: Path, shops_run: Path) -> None:
    first = promoted(storage)
    data = shops_run.parent / "more"
    write_shops(data)
    for gone in ("well", "turned", "odd", "few", "text"):
        (data / f"{gone}.csv").unlink()
    (data / "added.csv").write_text((data / "good.csv").read_text())
    run_of(data, storage / "tuesday", search_space="lasso", trials=1)
    releases, result = Releases("shops", storage), RunResult(storage / "tuesday")
    done = promote_run(result, releases)
    assert (done.release.number, done.added, done.replaced) == (2, 1, 1)
    assert not promote_run(result, releases).new
    after = {each.customer: each for each in champions_of(releases.champions(releases.current()))}
    assert (after["good"].run, after["good"].since) == ("../../tuesday", 2)
    assert {name: after[name] for name in first if name != "good"} == {
        name: champion for name, champion in first.items() if name != "good"
    }


def test_a_model_that_was_changed_by_hand_is_refused_and_nothing_is_released(storage: Path) -> None:
    file = next((storage / "monday" / "models").rglob("*.skops"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RunError, match="is damaged: its SHA-256 is not the recorded one"):
        promoted(storage)
    assert Releases("shops", storage).newest() is None


def test_records_that_were_changed_by_hand_are_refused(storage: Path) -> None:
    part = next((storage / "monday" / "records").rglob("studies-*"))
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(RunError, match="is damaged: its content does not have the digest in its name"):
        promoted(storage)


def test_a_run_without_models_is_refused(shops_run: Path, tmp_path: Path) -> None:
    run_of(shops_run.parent / "data", tmp_path / "runs" / "none", save_models=False, trials=1)
    with pytest.raises(PlanError, match="has saved no models"):
        promoted(tmp_path / "runs", "none")


def test_of_classes_a_constant_says_their_shares_even_of_one_class(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name, labels in (("two", ["no", "no", "no", "yes"]), ("one", ["yes"] * 3)):
        frame = pd.DataFrame({"x": range(len(labels)), "y": labels})
        frame.to_csv(tmp_path / "data" / f"{name}.csv", index=False)
    run_of(
        tmp_path / "data",
        tmp_path / "runs" / "monday",
        task="binary",
        metric="log_loss",
        search_space="logistic",
        split={},
    )
    found, new = promoted(tmp_path / "runs"), pd.DataFrame({"x": [7]})
    assert {champion.answer for champion in found.values()} == {CONSTANT}
    two, one = (model_of(tmp_path / "runs", found[name]) for name in ("two", "one"))
    assert two.predict_proba(new).tolist() == [[0.75, 0.25]]
    assert (one.predict(new).tolist(), one.predict_proba(new).tolist()) == (["yes"], [[1.0]])


def test_a_champion_s_configuration_fits_it_again_and_names_its_model(storage: Path) -> None:
    found = promoted(storage)
    result = RunResult(storage / "monday")
    assert found["good"].configuration == result.fixed_configurations()["good"].to_json()
    models = dict(zip(result.leaderboard()["customer"], result.leaderboard()["model"], strict=True))
    assert found["good"].model == models["good"]
    assert (found["few"].model, found["text"].model) == ("constant", None)


def test_customers_that_nobody_knows_get_a_constant_of_those_that_are_known(storage: Path, shops_run: Path) -> None:
    promoted(storage)
    found = ReleaseModels.current("shops", str(storage)).of("never seen")
    assert found.answer == CONSTANT
    seen = [pd.read_csv(file)["y"] for file in sorted((shops_run.parent / "data").glob("*.csv")) if file.stem != "text"]
    constants = [function(pd.concat(seen)) for function in (pd.Series.mean, pd.Series.median)]
    (answer,) = found.model.predict(pd.DataFrame({"x": [1.0]}))
    assert min(abs(answer - constant) for constant in constants) < 1e-9
    releases = Releases("shops", storage)
    others = releases.others(releases.current())
    assert others is not None
    assert texts(others.reason).startswith("the mean of the target of 5 customers that are known; ")


def test_whose_rows_have_ended_workers_is_answered_without_reading_them(
    storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `prepare` that hangs there would hang here."""
    best, frame = RunResult.best_studies, CustomerData.frame

    def one_quarantined(result: RunResult) -> pa.Table:
        table = best(result)
        status = pc.if_else(pc.equal(table["customer"], "few"), "quarantined", table["status"])
        return table.set_column(table.column_names.index("status"), "status", status)

    def not_read(data: CustomerData, customer: Customer) -> pd.DataFrame:
        assert customer.id != "few"
        return frame(data, customer)

    monkeypatch.setattr(RunResult, "best_studies", one_quarantined)
    monkeypatch.setattr(CustomerData, "frame", not_read)
    found = promoted(storage)
    assert found["few"].answer == NONE
    assert texts(found["few"].reason).endswith("there is no constant either: its rows are not read again")
    assert (found["good"].answer, found["odd"].answer) == (OWN, CONSTANT)


@pytest.mark.long
def test_with_a_pool_it_answers_where_it_is_better_than_a_constant(tmp_path: Path) -> None:
    write_shops(tmp_path / "data", usual=tuple("abcdefghij"))
    run_of(tmp_path / "data", tmp_path / "runs" / "monday", pool="on", trials=1)
    found = promoted(tmp_path / "runs")
    assert {name: champion.answer for name, champion in found.items() if name not in "abcdefghij"} == {
        "turned": CONSTANT,
        "odd": POOL,
        "few": POOL,
        "text": NONE,
    }
    assert texts(found["odd"].reason).startswith("the model of all customers; its ")
    assert (found["odd"].run, found["few"].run) == (HERE, "../../monday")
    assert texts(found["few"].reason).startswith(
        "the model of all customers; 4 rows with a target, fewer than min_rows"
    )
    shutil.rmtree(tmp_path / "runs" / "monday")
    new = pd.DataFrame({"x": [-1.0, 1.0], "z": [0.0, 0.0], "day": [70, 70]})
    low, high = model_of(tmp_path / "runs", found["odd"]).predict(new)
    assert high - low > 2.0
    other = ReleaseModels.current("shops", str(tmp_path / "runs")).of("never seen")
    low, high = other.model.predict(new)
    assert (other.answer, high - low > 2.0) == (POOL, True)
