"""What scikit-learn takes as X and y, `tune` takes, and its model predicts rows that come in the same shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_predict

from tuning import RunResult, TuneRunner, tune
from tuning.errors import CustomerError, DataError, DefinitionError
from tuning.preprocessing.shapes import column_names, paired

ROWS = 60
NEAR = 0.2  # of targets between -12 and 31, as ridge is fitted to two folds
USUAL: dict[str, Any] = {
    "search_space": "ridge",
    "metric": "rmse",
    "trials": 1,
    "split": {"folds": 2},
    "mlflow": False,
    "report": False,
}
#: Values that every type of numbers has: whole ones, all above 0, so that a sparse matrix has some 0 by `- 1`.
VALUES = np.random.default_rng(22).integers(1, 9, size=(ROWS, 3)).astype(float)
Y = 3 * VALUES[:, 0] - 2 * VALUES[:, 1] + VALUES[:, 2]
INDEX = pd.Index([f"row {number}" for number in range(ROWS)])


def named(*labels: Any, index: Any = INDEX) -> Callable[[np.ndarray], pd.DataFrame]:
    """Rows as a frame with these labels of columns."""
    columns = labels[0] if len(labels) == 1 else pd.Index(labels, tupleize_cols=False)
    return lambda values: pd.DataFrame(values, index=index[: len(values)], columns=columns)


def typed(dtype: Any) -> Callable[[np.ndarray], pd.DataFrame]:
    return lambda values: named("a", "b", "c")(values).astype(dtype)


def masked(values: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.MaskedArray(values, mask=np.zeros(values.shape, dtype=bool))


def matrix(values: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(values)


def sparse_as(name: str) -> Callable[[np.ndarray], Any]:
    return lambda values: sparse.coo_matrix(values - 1).asformat(name)


#: Each makes (n, 3) numbers into a shape of X.
X_SHAPES: dict[str, Callable[[np.ndarray], Any]] = {
    "names": named("a", "b", "c"),
    "names of one word and more": named("a b", "a, b", "a"),
    "levels": named(pd.MultiIndex.from_tuples([("pay", 5), ("pay", 6), ("tax", 5)], names=["type", "month"])),
    "levels of which all are empty": named(pd.MultiIndex.from_tuples([("", ""), ("a", None), (np.nan, "b")])),
    "the same levels": named(pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("a", "1")])),
    "levels and their text": named("a, x", ("a", "x"), "b"),
    "tuples": named(("a", "x"), ("a", "y"), "b"),
    "the same name twice": named("a", "b", "a"),
    "the same name thrice": named("a", "a", "a"),
    "names as doubles get them": named("a", "a_1", "a"),
    "numbers": named(0, 1, 2),
    "numbers and text": named(0, "b", None),
    "a number and its text": named(1, "1", 1.0),
    "no name": named("", "b", "c"),
    "missing names": named(None, np.nan, pd.NaT),
    "truth values": named(True, False, "True"),
    "days": named(pd.date_range("2024-01-01", periods=3)),
    "categories": named(pd.CategoricalIndex(["a", "b", "c"])),
    "intervals": named(pd.interval_range(0, 3)),
    "named as arrays are": named("x2", "x0", "x1"),
    "named as y": named("target", "target (y)", "y"),
    "named as roles": named("customer", "weight", "prediction"),
    "lone surrogates": named(pd.Index(["\ud800", "é", "e\u0301"], dtype=object)),
    "rows of two levels": named("a", "b", "c", index=pd.MultiIndex.from_product([range(ROWS // 2), list("ab")])),
    "rows with the same labels": named("a", "b", "c", index=pd.Index([0, 1] * (ROWS // 2))),
    "rows by time": named("a", "b", "c", index=pd.date_range("2024-01-01", periods=ROWS)[::-1]),
    "small floats": typed("float16"),
    "nullable whole numbers": typed("Int64"),
    "Arrow's": typed(pd.ArrowDtype(pa.int32())),
    "objects": typed(object),
    "sparse columns": typed(pd.SparseDtype(float, 1)),
    "types by column": typed({"a": "int8", "b": "float32", "c": object}),
    "array": np.asarray,
    "array by columns": np.asfortranarray,
    "array of float16": lambda values: values.astype(np.float16),
    "array of long doubles": lambda values: values.astype(np.longdouble),
    "array of other endianness": lambda values: values.astype(">i4"),
    "array of objects": lambda values: values.astype(object),
    "array backwards in memory": lambda values: values[::-1].copy()[::-1],
    "array that is read only": lambda values: np.frombuffer(values.tobytes()).reshape(values.shape),
    "array of which a column is constant": lambda values: np.insert(values, 1, 7.0, axis=1),
    "masked array": masked,
    "matrix": matrix,
    "lists": lambda values: values.tolist(),
    "tuples of rows": lambda values: tuple(map(tuple, values.astype(int).tolist())),
    "list of arrays": list,
    **{f"sparse {name}": sparse_as(name) for name in ("csr", "csc", "coo")},
    "sparse array": lambda values: sparse.csr_array((values - 1).astype(np.int32)),
    "Arrow's table": lambda values: pa.table(dict(zip("abc", values.T, strict=True))),
}


def frame_of(X: Any, y: Any) -> pd.DataFrame:
    """What `tune` makes of X and y, with one name for all targets."""
    rows, target = paired(X, y)
    return pd.concat([rows, target.rename("wanted")], axis=1)


def run_of(frames: dict[str, pd.DataFrame], folder: Path, **keys: Any) -> RunResult:
    runner = TuneRunner(data=frames, target="wanted", **{**USUAL, **keys})
    return runner.run(folder / "run", in_process=True, progress=False)


@pytest.fixture(scope="module")
def of_x(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run in which each shape of X is a customer, with the same target."""
    return run_of({name: frame_of(shape(VALUES), Y) for name, shape in X_SHAPES.items()}, tmp_path_factory.mktemp("x"))


@pytest.mark.long
@pytest.mark.parametrize("name", X_SHAPES)
def test_a_model_of_rows_in_a_shape_predicts_rows_in_that_shape(name: str, of_x: RunResult) -> None:
    rows, model = X_SHAPES[name](VALUES), of_x.model(name)
    np.testing.assert_allclose(model.predict(rows), Y, atol=NEAR)
    np.testing.assert_allclose(model.predict(X_SHAPES[name](VALUES[:5])), Y[:5], atol=NEAR)
    answered = of_x.predict(rows, name)
    np.testing.assert_allclose(answered.iloc[:, -1], Y, atol=NEAR)
    if isinstance(rows, pd.DataFrame):
        pd.testing.assert_index_equal(answered.index, rows.index)
        assert answered.columns[:3].tolist() == rows.columns.tolist()
        pd.testing.assert_index_equal(model.predict(rows, interval=0.8).index, rows.index)


#: Each makes (n,) whole numbers into a shape of y.
Y_SHAPES: dict[str, Callable[[np.ndarray], Any]] = {
    "Series": lambda y: pd.Series(y, INDEX),
    "Series in another order": lambda y: pd.Series(y, INDEX)[::-1],
    "Series named as a column": lambda y: pd.Series(y, INDEX, name="b"),
    "Series named by a number": lambda y: pd.Series(y, INDEX, name=0),
    "Series of nullable numbers": lambda y: pd.Series(y, INDEX, dtype="Int64"),
    "sparse Series": lambda y: pd.Series(pd.arrays.SparseArray(y), INDEX),
    "Index": pd.Index,
    "pandas' array": lambda y: pd.array(y, dtype="Float64"),
    "frame of one column": lambda y: pd.DataFrame({"price": y}, INDEX).sample(frac=1, random_state=0),
    "frame of one column with levels": lambda y: pd.DataFrame(y, INDEX, pd.MultiIndex.from_tuples([("price", 1)])),
    "array": np.asarray,
    "array of other endianness": lambda y: y.astype(">f4"),
    "array of one column": lambda y: y.reshape(-1, 1),
    "masked array": masked,
    "matrix": lambda y: matrix(y).T,
    "list": lambda y: y.tolist(),
    "lists of one number": lambda y: y.reshape(-1, 1).tolist(),
    "tuple": lambda y: tuple(y.tolist()),
    "bytes of numbers": lambda y: memoryview(y.tobytes()).cast("q"),
    "sparse column": lambda y: sparse.csc_matrix(y.reshape(-1, 1)),
    "Arrow's array": pa.array,
    "Arrow's column": lambda y: pa.chunked_array([y[:7], y[7:]]),
}
CLASSES = np.where(np.median(Y) < Y, 2, 1)
TEXTS = np.where(CLASSES == 2, "yes", "no")
#: y of classes, and the labels that its model answers with.
CLASS_SHAPES: dict[str, tuple[Any, list[object]]] = {
    "truth values": (CLASSES == 2, [False, True]),
    "Series of truth values": (pd.Series(CLASSES == 2, INDEX)[::-1], [False, True]),
    "nullable truth values": (pd.Series(CLASSES == 2, INDEX, dtype="boolean"), [False, True]),
    "Arrow's truth values": (pd.Series(CLASSES == 2, INDEX, dtype=pd.ArrowDtype(pa.bool_())), [False, True]),
    "numbers": (CLASSES, [1, 2]),
    "floats": (CLASSES.astype(float), [1, 2]),
    "nullable numbers": (pd.Series(CLASSES, INDEX, dtype="Int8"), [1, 2]),
    "categories of numbers": (pd.Series(CLASSES, INDEX, dtype="category"), [1, 2]),
    "texts": (TEXTS, ["no", "yes"]),
    "objects": (TEXTS.astype(object), ["no", "yes"]),
    "string": (pd.Series(TEXTS, INDEX, dtype="string"), ["no", "yes"]),
    "Arrow's string": (pd.Series(TEXTS, INDEX, dtype=pd.ArrowDtype(pa.string())), ["no", "yes"]),
    "categories": (pd.Categorical(TEXTS, categories=["yes", "never", "no"], ordered=True), ["no", "yes"]),
    "Series of categories": (pd.Series(TEXTS, INDEX, dtype="category")[::-1], ["no", "yes"]),
    "column of texts": (pd.DataFrame({"y": TEXTS}, INDEX), ["no", "yes"]),
}


@pytest.fixture(scope="module")
def of_y(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    X, whole = X_SHAPES["names"](VALUES), Y.astype(int)
    return run_of({name: frame_of(X, shape(whole)) for name, shape in Y_SHAPES.items()}, tmp_path_factory.mktemp("y"))


@pytest.mark.long
@pytest.mark.parametrize("name", Y_SHAPES)
def test_a_target_in_any_shape_is_learned_row_by_row(name: str, of_y: RunResult) -> None:
    np.testing.assert_allclose(of_y.model(name).predict(X_SHAPES["names"](VALUES)), Y, atol=NEAR)


@pytest.fixture(scope="module")
def of_classes(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    X, folder = X_SHAPES["names"](VALUES), tmp_path_factory.mktemp("classes")
    keys = {"search_space": "logistic", "task": "binary", "metric": "accuracy"}
    return run_of({name: frame_of(X, y) for name, (y, _) in CLASS_SHAPES.items()}, folder, **keys)


@pytest.mark.long
@pytest.mark.parametrize("name", CLASS_SHAPES)
def test_classes_in_any_shape_come_back_as_they_are(name: str, of_classes: RunResult) -> None:
    labels, model = CLASS_SHAPES[name][1], of_classes.model(name)
    assert [*map(repr, model.classes_.tolist())] == [*map(repr, labels)]
    right = model.predict(X_SHAPES["names"](VALUES)) == np.array(labels)[CLASSES - 1]
    assert right.mean() > 0.9


A_FRAME = X_SHAPES["names"](VALUES)
TWO = pd.DataFrame({"a": [1.0, 2.0]}, index=["r", "s"])
#: What is refused, and what is said of it.
REFUSED: dict[str, tuple[Any, Any, list[str]]] = {
    "one number per row": (
        np.zeros(3),
        np.zeros(3),
        ["X has the shape (3,)", "np.reshape(X, (-1, 1)) for one column", "(1, -1)"],
    ),
    "a list of numbers": ([1, 2, 3], [1, 2, 3], ["X has the shape (3,)", "np.reshape(X, (-1, 1))"]),
    "a Series": (A_FRAME["a"], Y, ["X has the shape (60,)", "X.to_frame() for one column"]),
    "nothing": (None, [1.0], ["X has the shape ()"]),
    "a dict": ({"a": [1.0]}, [1.0], ["X has the shape ()", "pd.DataFrame(X)"]),
    "pictures": (np.zeros((3, 2, 2)), np.zeros(3), ["X has the shape (3, 2, 2)"]),
    "a structured array": (A_FRAME.to_records(), Y, ["pd.DataFrame(X)"]),
    "ragged lists": ([[1, 2], [3]], [1, 2], ["X has the shape (2,)"]),
    "no rows of y": (A_FRAME, None, ["y has the shape ()"]),
    "a row too many": (A_FRAME, [*Y, 0], ["y has 61 values", "X has 60 rows"]),
    "a Series that is too long": (TWO, pd.Series([1, 2, 3], index=["r", "s", "t"]), ["y has 3 values", "X has 2 rows"]),
    "two columns": (A_FRAME, np.zeros((60, 2)), ["y has the shape (60, 2)", "each column alone"]),
    "other labels": (TWO, pd.Series([1, 2], index=["r", "t"]), ["'s' is in X alone", "y.to_numpy()"]),
    "labels twice in y": (
        TWO,
        pd.Series([1, 2], index=["r", "r"]),
        ["a label is there more than once", "y.to_numpy()"],
    ),
    "labels twice in another order": (
        pd.DataFrame({"a": [1, 2, 3]}, index=[0, 0, 1]),
        pd.Series([1, 2, 3], index=[0, 1, 0]),
        ["a label is there more than once", "y.to_numpy()"],
    ),
    "moments with and without a zone": (
        TWO.set_axis(pd.date_range("2024", periods=2)),
        pd.Series([1, 2], index=pd.date_range("2024", periods=2, tz="UTC")),
        ["is in X alone"],
    ),
}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"weight": Y}, "weight: values of rows are a column of them: add it to X"),
        ({"split": {"group": pd.Series(Y)}}, "split.group: values of rows are a column of them: add it to X"),
        ({"sample_weight": Y}, "Here it is `weight`: Column of sample weights"),
        ({"groups": Y}, "Here it is `split`: .*group: COLUMN"),
    ],
)
def test_weights_and_groups_are_columns_of_x(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        tune(A_FRAME, Y, **USUAL | keys)


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_with_the_way_out(name: str) -> None:
    X, y, said = REFUSED[name]
    with pytest.raises(DataError) as error:
        tune(X, y, **USUAL)
    assert [text for text in said if text not in str(error.value)] == []


@pytest.mark.parametrize(
    ("index", "order"),
    [
        (pd.Index(["r", "s", "t"]), [2, 0, 1]),
        (pd.Index([5, 3, 4]), [1, 0, 2]),
        (pd.Index([1.5, np.nan, 2.0]), [2, 1, 0]),
        (pd.date_range("2024", periods=3, tz="UTC"), [2, 1, 0]),
        (pd.MultiIndex.from_tuples([("r", 1), ("r", 2), ("s", 1)]), [1, 2, 0]),
        (pd.CategoricalIndex(["r", "s", "t"]), [2, 0, 1]),
        (pd.Index(["r", "r", "s"]), [0, 1, 2]),
    ],
)
def test_rows_and_targets_are_paired_by_their_labels(index: pd.Index, order: list[int]) -> None:
    rows, target = paired(pd.DataFrame({"a": [0, 1, 2]}, index), pd.Series([0, 1, 2], index).iloc[order])
    assert rows["a"].tolist() == target.tolist() == [0, 1, 2]


def test_what_has_no_labels_is_paired_by_position() -> None:
    for X, y in ((TWO, np.array([1, 2])), (TWO.to_numpy(), pd.Series([1, 2], index=[7, 7])), (TWO, pd.Index([1, 2]))):
        assert paired(X, y)[1].tolist() == [1, 2]


def test_columns_are_called_as_users_know_them() -> None:
    names = {
        ("salary", 5): "salary, 5",
        ("y", ""): "y",
        (0,): "0",
        0.5: "0.5",
        "a, b": "a, b",
        "": "unnamed",
        pd.Timestamp("2024-01-01"): "2024-01-01 00:00:00",
    }
    assert column_names(names) == [*names.values()]
    assert column_names(["a", "b", "a", 1, "1"]) == ["a_1", "b", "a_2", "1_1", "1_2"]
    assert len(set(column_names(["a", "a", "a_1", "a_1_1", "", None, "unnamed_1"]))) == 7


def test_a_target_keeps_its_name_where_no_column_has_it() -> None:
    y = pd.Series([1, 2], ["r", "s"])
    assert [paired(TWO, each)[1].name for each in (y.rename("b"), y.rename(("b", 1)), y, y.rename("a"))] == [
        *("b", "b, 1", "target", "a (y)")
    ]
    assert paired(TWO.assign(target=0), y)[1].name == "target (y)"


@pytest.mark.long
def test_a_pivoted_table_is_tuned_and_its_columns_are_named_in_notes(tmp_path: Path) -> None:
    X = named(pd.MultiIndex.from_product([["pay", "tax"], [5, 6]]))(np.column_stack([VALUES, np.ones(ROWS)]))
    y = pd.Series(Y, INDEX, name=("pay", 5))[::-1]
    result = tune(X, y, run_dir=tmp_path / "run", in_process=True, progress=False, **USUAL)
    assert "left out: tax, 6 (empty or constant)" in [*map(str, result.customer().notes)]
    assert {column.name for column in result.model().columns} == {"pay, 5", "pay, 6", "tax, 5"}
    np.testing.assert_allclose(result.model().predict(X), Y, atol=NEAR)


@pytest.mark.long
def test_a_table_names_its_roles_as_its_columns_are_called(tmp_path: Path) -> None:
    X = named(pd.MultiIndex.from_product([["pay"], [5, 6, 7]]))(VALUES)
    X[[("y", ""), ("w", "")]] = np.column_stack([Y, np.ones(ROWS)])
    table = pd.concat([X, X])
    result = TuneRunner(data=table, target="y", weight="w", drop=["pay, 7"], **USUAL).run(
        tmp_path / "run", in_process=True, progress=False
    )
    assert {column.name for column in result.model().columns} == {"pay, 5", "pay, 6"}
    with pytest.raises(Exception, match=r"no customer has a column 'y'.*'y_1'"):
        TuneRunner(data=table.set_axis([*"abcyy"], axis=1), target="y", **USUAL).plan()


@pytest.mark.long
def test_arrays_of_another_width_and_single_rows_are_refused_with_the_way_out(of_x: RunResult) -> None:
    model = of_x.model("array of which a column is constant")
    with pytest.raises(CustomerError, match=r"\('x0', 'x2', 'x3'\), or an array with a width of 4.*shape \[60, 3\]"):
        model.predict(VALUES)
    with pytest.raises(DataError, match=r"np.reshape\(X, \(1, -1\)\) for one row"):
        model.predict([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(DataError, match=r"X.to_frame\(\).T for one row"):
        of_x.model("names").predict(A_FRAME.iloc[0])
    assert of_x.model("names").predict(A_FRAME.iloc[0].to_frame().T) == pytest.approx(Y[:1], abs=NEAR)
    with pytest.raises(
        CustomerError, match=r"new rows are a pandas DataFrame with the columns by name \('a', 'b', 'c'\)"
    ):
        of_x.model("names").predict(VALUES)
    with pytest.raises(CustomerError, match="columns are missing: 'a_1', 'a_2'"):
        of_x.model("the same name twice").predict(named("a", "b", "c")(VALUES))


@pytest.mark.long
@pytest.mark.parametrize("labels", [[1, 2], ["churned", "stayed"], [False, True], ["no", "yes"]], ids=str)
@pytest.mark.parametrize("rarer", [0, 1])
def test_scikit_learns_tools_take_each_class_for_itself(labels: list[object], rarer: int, tmp_path: Path) -> None:
    """Whichever is the positive one: they take `classes_` to be sorted."""
    noisy = VALUES[:, 0] + np.random.default_rng(0).normal(size=ROWS)
    y = np.array(labels)[(noisy > np.quantile(noisy, 0.7 if rarer else 0.3)).astype(int)]
    keys = {"search_space": "logistic", "metric": "roc_auc", "task": "binary"}
    model = tune(A_FRAME, y, run_dir=tmp_path / "run", in_process=True, progress=False, **USUAL | keys).model()
    assert model.classes_.tolist() == labels
    for scorer in ("roc_auc", "accuracy"):
        assert get_scorer(scorer)(model, A_FRAME, y) > 0.7
    assert get_scorer("neg_log_loss")(model, A_FRAME, y) > np.log(0.5)
    chances = cross_val_predict(model, A_FRAME, y, method="predict_proba", cv=2)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(A_FRAME))
    assert CalibratedClassifierCV(FrozenEstimator(model)).fit(A_FRAME, y).score(A_FRAME, y) > 0.7
