"""The models of a release: which one serves a customer, and that a changed one serves nobody."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tuning import RunResult, TuneRunner
from tuning.errors import NoModelError, RunError, UnknownCustomerError
from tuning.notes import ServingCode
from tuning.serving.champion import CONSTANT, NONE, OWN, Champion, table_of
from tuning.serving.models import ReleaseModels
from tuning.serving.release import PROMOTE, Release
from tuning.serving.releases import Releases


def rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=40), "zone": np.repeat(["A", "B"], 20)})
    return frame.assign(y=2 * frame["a"] + (frame["zone"] == "B") + rng.normal(scale=0.1, size=40))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    given: dict[str, Any] = {
        "target": "y",
        "by": ["zone"],
        "trials": 1,
        "models": ["ridge"],
        "mlflow": False,
        "report": False,
    }
    folder = tmp_path_factory.mktemp("storage") / "monday"
    return TuneRunner(data=rows(0), **given).run(folder, in_process=True, progress=False)


def champion(result: RunResult, customer: str, **other: Any) -> Champion:
    study = result.customer(customer).study
    assert study is not None
    found = Champion(
        customer=customer,
        answer=OWN,
        run="../../monday",
        study=study.study,
        model_path=study.model_path,
        model_sha256=study.model_sha256,
        configuration=None,
        rows=20,
        since=1,
        reason=(ServingCode.WINNER(),),
    )
    return replace(found, **other)


def placed(result: RunResult, champions: Sequence[Champion]) -> ReleaseModels:
    storage = Path(result.directory.root).parent
    releases = Releases("churn", storage)
    newest = releases.newest()
    number = releases.next_number()
    draft = Release(number, None if newest is None else newest.number, PROMOTE)
    releases.place(draft, table_of(champions))
    return ReleaseModels.current("churn", str(storage))


def test_a_release_gives_each_customer_what_serves_it(result: RunResult) -> None:
    stand_in = champion(result, "B", answer=CONSTANT)
    nobody = replace(
        champion(result, "B"),
        customer="C",
        answer=NONE,
        model_path=None,
        model_sha256=None,
        reason=(ServingCode.NO_TARGET(),),
    )
    models = placed(result, [champion(result, "A"), stand_in, nobody])
    assert models.mark == ("release", models.number)
    assert models.definition.by == ("zone",)
    assert pickle.loads(pickle.dumps(models)) == models
    new = rows(1)
    found = models.of("A")
    assert found.answer == OWN
    np.testing.assert_array_equal(found.model.predict(new), result.model("A").predict(new))
    assert models.of("B").answer == CONSTANT
    assert models.knows("C")
    with pytest.raises(NoModelError, match="customer 'C' has no champion: no row has a target"):
        models.of("C")
    with pytest.raises(UnknownCustomerError, match="no customer 'D' in release"):
        models.of("D")


def test_a_model_that_is_not_the_one_of_the_release_serves_nobody(result: RunResult) -> None:
    models = placed(result, [champion(result, "A", model_sha256="0" * 64)])
    with pytest.raises(RunError, match="is damaged: its SHA-256 is not the recorded one"):
        models.of("A")


def test_a_release_of_no_run_cannot_say_how_rows_are_read(result: RunResult) -> None:
    models = placed(result, [champion(result, "A", run=".")])
    with pytest.raises(RunError, match="no champion of churn comes from a run"):
        _ = models.definition
