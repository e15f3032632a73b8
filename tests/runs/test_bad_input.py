"""Bad input gets a clear reason and loses nothing: one run with every kind of bad customer among good ones."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression

from tuning import RunResult, TuneRunner
from tuning.basics.wording import guarded
from tuning.errors import DataError
from tuning.preprocessing.columns import Column

QUICK = {
    "algorithm": "random",
    "scheduler": "fifo",
    "trials": 2,
    "mlflow": False,
    "report": False,
    "slots": 1,
    "search_space": "ridge",
}


def rows(count: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2))
    y = x @ [1.0, -1.0] + rng.normal(size=count)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": rng.choice(["u", "v"], count), "y": y})


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


# name of the file, its content, what the reason says (None: it gets a model)
FILES: list[tuple[str, Callable[[], bytes], str | None]] = [
    ("good.csv", lambda: csv(rows()), None),
    ("good.parquet", lambda: parquet(pa.Table.from_pandas(rows())), None),
    ("index.csv", lambda: rows().to_csv().encode(), None),
    ("mark.csv", lambda: b"\xef\xbb\xbf" + csv(rows()), None),
    ("windows.csv", lambda: csv(rows()).replace(b"\n", b"\r\n"), None),
    ("some targets missing.csv", lambda: csv(rows().assign(y=lambda f: f["y"].where(f.index % 3 > 0))), None),
    ("trailing comma.csv", lambda: csv(rows()).replace(b"\n", b",\n"), None),
    ("fewer rows than folds.csv", lambda: csv(rows(6)), None),
    ("four rows.csv", lambda: csv(rows(4)), None),
    ("no target.csv", lambda: csv(rows().drop(columns="y")), "the target 'y' is not among the columns: 'a', 'b', 'c'"),
    ("semicolons.csv", lambda: csv(rows()).replace(b",", b";"), "separated by ';': set `csv: {sep: ';'}`"),
    ("target NaN.csv", lambda: csv(rows().assign(y=np.nan)), "0 rows with a target, fewer than min_rows: 4"),
    ("target infinite.csv", lambda: csv(rows().assign(y=np.inf)), "the target 'y' holds 60 infinite values"),
    ("target constant.csv", lambda: csv(rows().assign(y=5)), r"the target 'y' is constant \(5\)"),
    ("target text.csv", lambda: csv(rows().assign(y="high")), "the target 'y' holds text, regression needs numbers"),
    ("three rows.csv", lambda: csv(rows(3)), "3 rows with a target, fewer than min_rows: 4"),
    ("header only.csv", lambda: csv(rows(0)), "0 rows with a target"),
    ("empty.csv", lambda: b"", "the file empty.csv is empty"),
    ("blank lines.csv", lambda: b"\n\n\n", "the file blank lines.csv is empty"),
    ("latin.csv", lambda: csv(rows().assign(c="Müller")).decode().encode("latin-1"), "is not utf-8 text .*encoding"),
    ("cut in a quote.csv", lambda: csv(rows()) + b'1,2,"no end', "cannot be read: EOF inside string"),
    ("cut.csv.gz", lambda: gzip.compress(csv(rows(500)))[:2000], "cannot be read: Truncated compressed stream"),
    ("no gzip.csv.gz", lambda: csv(rows()), "cannot be read: .*header"),
    ("picture.csv", lambda: b"\x89PNG\r\n\x1a\n\x00\x00" + bytes(range(256)) * 9, "is not utf-8 text|cannot be read"),
    ("zeros.csv", lambda: b"\x00" * 4000, "not among the columns|cannot be read"),
    ("doubled.csv", lambda: csv(rows()).replace(b"a,b,", b"a,a,", 1), "has the column 'a' twice"),
    ("nameless.csv", lambda: csv(rows()).replace(b"a,b,", b"a,,", 1), "column 2 of the file nameless.csv has no name"),
    ("long rows.csv", lambda: csv(rows()).replace(b"a,b,c,y", b"a,b,c", 1), "more fields than its header|not among"),
    ("ragged.csv", lambda: csv(rows()) + b"1,2,3,4,5,6\n", "cannot be read: Expected 4 fields in line 62, saw 6"),
    ("wide.csv", lambda: (",".join(f"x{n}" for n in range(100_000)) + ",y\n").encode() + b"1," * 100_000 + b"1\n",
     "has 100001 columns, more than limits.max_columns: 10000"),
    ("long.csv", lambda: csv(rows(1001)), "has at least 1001 rows, more than limits.max_rows: 1000; raise it"),
    ("long.parquet", lambda: parquet(pa.Table.from_pandas(rows(1001))), "has 1001 rows, more than limits.max_rows"),
    ("only the target.csv", lambda: csv(rows()[["y"]]), "no usable feature: there is no other column"),
    ("flat.csv", lambda: csv(rows().assign(a=1, b=np.nan, c="u")), "no usable feature: a .empty or constant., b"),
    ("cut.parquet", lambda: parquet(pa.Table.from_pandas(rows()))[:-30], "cannot be read: Parquet magic bytes"),
    ("text.parquet", lambda: b"a,b\n1,2\n", "cannot be read"),
    ("doubled.parquet", lambda: parquet(pa.table([[1.0] * 9] * 3, names=["a", "a", "y"])), "has the column 'a' twice"),
    ("prepare fails.csv", lambda: csv(rows().assign(fail=1)), "prepare failed: ZeroDivisionError: division by zero"),
    ("prepare levels.csv", lambda: csv(rows().assign(level=1)), "prepare gave back rows with labels of 2 levels"),
]  # fmt: skip


def prepare(frame: pd.DataFrame) -> pd.DataFrame:
    if "fail" in frame.columns:
        1 / 0  # noqa: B018  # it raises
    return frame


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """One run over all of them, in process."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "data").mkdir()
    for name, content, _ in FILES:
        (folder / "data" / name).write_bytes(content())
    (folder / "data" / "a link to nowhere.csv").symlink_to(folder / "gone.csv")
    (folder / "data" / "a folder.csv").mkdir()
    (folder / "prepare.py").write_text(
        "def prepare(frame):\n"
        "    if 'level' in frame:\n"
        "        return frame.set_index(['a', 'level'], drop=False)\n"
        "    return 1 / 0 if 'fail' in frame else frame\n"
    )
    entries = {name: str(folder / "data" / name) for name, _, _ in FILES}
    entries["link"] = str(folder / "data" / "a link to nowhere.csv")
    entries["folder"] = str(folder / "data" / "a folder.csv")
    entries["nowhere"] = "no-such-scheme://bucket/x.csv"
    return TuneRunner(
        data=entries,
        target="y",
        task="regression",
        prepare=f"{folder / 'prepare.py'}:prepare",
        limits={"max_rows": 1000},
        split={"folds": 10},
        **QUICK,
    ).run(str(folder / "run"), in_process=True, progress=False)


def test_everybody_is_on_the_leaderboard_once(run: RunResult) -> None:
    board = run.leaderboard()
    assert sorted(board["customer"]) == sorted([*(name for name, _, _ in FILES), "link", "folder", "nowhere"])
    assert not board["reason"].fillna("").str.contains("Traceback|Error\\(").any()
    assert (board["reason"].fillna("").str.len() < 400).all()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, reason) for name, _, reason in FILES),
        ("link", "the file a link to nowhere.csv is not there"),
        ("folder", "cannot be read|is a folder"),
        ("nowhere", "the place 'no-such-scheme://bucket.*' cannot be opened"),
    ],
)
def test_a_customer_has_a_model_or_the_reason(name: str, reason: str | None, run: RunResult) -> None:
    row = run.leaderboard().set_index("customer").loc[name]
    if reason is None:
        assert row["status"] == "ok", row["reason"]
        assert len(run.model(name).predict(rows(5))) == 5
    else:
        assert row["status"] == "no_model"
        assert pd.Series([row["reason"]]).str.contains(reason).all(), row["reason"]
        assert row["trials"] == 0


def test_the_record_keeps_the_traceback_that_the_user_never_sees(run: RunResult) -> None:
    record = next(record for record in run.study_records if record.customer == "prepare fails.csv")
    assert "ZeroDivisionError" in (record.error or "")
    assert "Traceback" in (record.error or "")


# --- classes ------------------------------------------------------------------------------------


def test_classes_that_cannot_be_learned(tmp_path: Path) -> None:
    frame = rows()
    good = frame.assign(y=np.where(frame["a"] > 0, "yes", "no"))
    targets = {
        "good": good["y"],
        "true and false": frame["a"] > 0,
        "three": np.resize(["x", "y", "z"], 60),
        "single": ["no"] * 60,
        "one yes": ["yes"] + ["no"] * 59,
        "missing": [None] * 60,
    }
    board = (
        TuneRunner(
            data={name: frame.assign(y=target) for name, target in targets.items()},
            target="y",
            task="binary",
            **{**QUICK, "search_space": "logistic"},
        )
        .run(str(tmp_path / "run"), in_process=True, progress=False)
        .leaderboard()
        .set_index("customer")
    )
    assert len(board) == len(targets)
    assert set(board[board["status"] == "ok"].index) == {"good", "true and false"}
    assert board.loc["three", "reason"] == "the target 'y' holds 3 classes ('x', 'y', 'z'), the task is binary."
    assert "is constant (no)" in board.loc["single", "reason"]
    assert "single class" in board.loc["one yes", "reason"] or "single row" in board.loc["one yes", "reason"]
    assert "0 rows with a target" in board.loc["missing", "reason"]


# --- ids ----------------------------------------------------------------------------------------

IDS = [
    "plain", "PLAIN", "a/b", "../../etc/passwd", "..", ".", "/", "C:\\x", "line\nbreak", "tab\tand space ", " ",
    "🦔", "Ünïcödé", "-rf", "a" * 300, "a" * 299 + "b", "con", "%2e%2e", "x\x7fy", "'\";--", "{}", "None", "~root",
]  # fmt: skip


@pytest.mark.parametrize("by", ["id", ["id", "second"]])
def test_any_id_is_safe_on_disk_and_intact_on_the_leaderboard(by: str | list[str], tmp_path: Path) -> None:
    frame = pd.concat([rows(12, seed).assign(id=name, second="/") for seed, name in enumerate(IDS)])
    outside = tmp_path / "outside"
    run = outside / "inside" / "run"
    result = TuneRunner(data=frame, by=by, target="y", task="regression", **QUICK).run(
        str(run), in_process=True, progress=False
    )
    board = result.leaderboard()
    assert (board["status"] == "ok").all()
    if by == "id":
        assert sorted(board["customer"]) == sorted(IDS)
        again = pd.read_csv(run / "leaderboard.csv", keep_default_na=False)
        assert sorted(again["customer"]) == sorted(map(guarded, IDS))
    assert board["customer"].is_unique
    assert board["model_path"].is_unique
    for name in board["customer"]:
        assert len(result.model(name).predict(frame[:3])) == 3
    assert [path.name for path in outside.iterdir()] == ["inside"]
    assert [path.name for path in (outside / "inside").iterdir()] == ["run"]
    for path in run.rglob("*"):
        assert len(path.name.encode()) < 150
        assert path.name.isascii()
        assert path.name.isprintable()


# --- models and metrics that misbehave ----------------------------------------------------------


class Misbehaving(LinearRegression):
    """A linear model that raises, warns or answers NaN."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how = how

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Misbehaving:
        if self.how == "raise":
            raise RuntimeError("this model never fits")
        if self.how == "warn":
            for number in range(10_000):
                warnings.warn(f"warning {number}", stacklevel=1)
        super().fit(X, y, sample_weight)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return super().predict(X) * (np.nan if self.how == "nan" else 1.0)


def test_a_model_that_misbehaves_costs_its_own_trials(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = TuneRunner(
        data={"one": rows(), "two": rows(seed=2)},
        target="y",
        task="regression",
        models=[LinearRegression(), *(Misbehaving(how) for how in ("raise", "warn", "nan"))],
        allow_code=True,
        **{**QUICK, "search_space": None, "trials": 12},
    ).run(str(tmp_path / "run"), in_process=True, progress=False)
    assert (result.leaderboard()["status"] == "ok").all()
    reasons = {str(record.reason or "") for record in result.trial_records if record.state == "failed"}
    assert any("this model never fits" in reason for reason in reasons)
    assert any("nan" in reason.lower() for reason in reasons)
    shown = capfd.readouterr()
    assert "warning 1" not in shown.err
    assert "Traceback" not in shown.err + shown.out


def test_a_model_that_never_works_leaves_a_reason_for_everybody(tmp_path: Path) -> None:
    board = (
        TuneRunner(
            data={"one": rows(), "two": rows(seed=2)},
            target="y",
            task="regression",
            models=[Misbehaving("raise")],
            allow_code=True,
            **{**QUICK, "search_space": None},
        )
        .run(str(tmp_path / "run"), in_process=True, progress=False)
        .leaderboard()
    )
    assert (board["status"] == "no_model").all()
    assert board["reason"].str.contains("no trial finished, of 1 .*this model never fits").all(), board[
        "reason"
    ].tolist()


# --- what concerns everybody --------------------------------------------------------------------


def test_a_keyed_table_that_cannot_be_read_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(csv(rows()) + b'1,2,"no end')
    with pytest.raises(DataError, match=r"table\.csv cannot be read: EOF inside string"):
        TuneRunner(data=str(tmp_path / "table.csv"), by="c", target="y", **QUICK).run(str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_columns_that_appear_at_predict_only_are_ignored(run: RunResult) -> None:
    model = run.model("good.csv")
    assert Column("a", "number") in model.columns
    assert len(model.predict(rows(5).assign(more=1)[["more", "c", "b", "a"]])) == 5
