"""What rows are known by depends on every value, and on nothing else; no column is too odd for it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from data_shapes import changed_since, known

from tuning.basics.columnar import Columnar
from tuning.data.customers import Customer, find_customers
from tuning.data.fingerprints import differ, touched
from tuning.definition.definition import define

ODD = {
    "lists": [[1], [2], None],
    "mixed": [1, "a", None],
    "large": [2**63, 2**64, 1],
    "half a character": pd.Series(["\ud800", "a", "b"], dtype=object),
    "intervals": pd.interval_range(0, 3),
    "sparse": pd.arrays.SparseArray([0, 0, 1]),
    "categories": pd.Categorical(["a", "b", "b"]),
}


@pytest.mark.parametrize("values", ODD.values(), ids=ODD.keys())
def test_an_odd_column_is_known_like_any_other(values: Any) -> None:
    frames = {"acme": pd.DataFrame({"x": values, "y": [1, 2, 3]}), "beta": pd.DataFrame({"y": [1, 2]})}
    made = define({"data": frames, "target": "y"})
    before = known(made)
    assert changed_since(made, before) == []
    other = frames["acme"].iloc[[2, 1, 0]].assign(y=[1, 2, 3])
    now = define({"data": {**frames, "acme": other}, "target": "y"})
    assert changed_since(now, before) == ["acme"]


def test_what_no_digest_is_known_of_has_changed_with_its_number_of_rows() -> None:
    frame = pd.DataFrame({"y": range(9), "shop": list("aaabbbccc")})
    made = define({"data": frame, "by": "shop", "target": "y"})
    before = {customer.id: dataclasses.replace(customer, digest="") for customer in find_customers(made)}
    assert changed_since(made, before) == []
    fewer = define({"data": frame[1:], "by": "shop", "target": "y"})
    assert changed_since(fewer, before) == ["a"]


def test_a_file_that_has_changed_is_looked_at_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "acme.csv"
    file.write_text("y\n1\n")
    made = define({"data": str(file), "target": "y"})
    before = known(made)
    file.write_text("y\n22\n")
    stat, looks = os.stat, []
    monkeypatch.setattr(os, "stat", lambda path, *given, **named: looks.append(path) or stat(path, *given, **named))
    then = Columnar.of(Customer, [*before.values()])
    assert differ(then, touched(made, then, then)).tolist() == [True]
    assert looks.count(str(file)) == 2  # one of them asks whether it is a file that can be read
