"""The few rows that are kept with a model come back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data

from tuning.models.customer_model import CustomerModel, load_model
from tuning.models.families.ridge import FAMILY
from tuning.models.member import Member
from tuning.storage.run_directory import RunDirectory

PLAIN = {"a": [1.5, np.nan, 1 / 3, -2e-300, 1e22], "b": [1, 2, -3, 4, 2**60]}
OTHERS = {"c": pd.array([1, None, 3, 4, 5], "Int64"), "d": [True, False, True, True, False], "e": list("vwxyz")}


@pytest.mark.parametrize("columns", [PLAIN, PLAIN | OTHERS])
def test_the_rows_of_an_example_are_read_as_they_were(tmp_path: Path, columns: dict[str, object]) -> None:
    rows = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) ** 2})
    data = prepare_data(rows, target="y", task="regression", seed=0)
    encoder, train, _ = data.whole(FAMILY)
    member = Member(FAMILY.name, data.columns, encoder, FAMILY.fit({"alpha": 1.0}, train, data.task, 0))
    given = pd.DataFrame(columns)
    directory = RunDirectory(str(tmp_path))
    CustomerModel("acme", data.task, (member,), given).save(directory, "models/acme")
    found = load_model(directory, "models/acme").example
    assert found is not None
    assert list(found.columns) == list(given.columns)
    for name in columns:
        if name == "a":
            np.testing.assert_allclose(found[name].astype(float), given[name], rtol=1e-15, atol=1e-15)
            continue
        expected = [None if pd.isna(value) else value for value in given[name].tolist()]
        assert [None if pd.isna(value) else value for value in found[name].tolist()] == expected
