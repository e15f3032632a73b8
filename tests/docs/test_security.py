"""What comes from outside cannot leave the run directory, run code, explode or show a secret."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pickle
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from builders import definition, write_customers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paths import ROOT
from sources import parsed, source_files

from search_spaces import SpaceError
from tuning import RunResult, TuneRunner
from tuning.definition.yaml_file import load_yaml, read_definition
from tuning.errors import DefinitionError, RunError, StorageError, TuningError
from tuning.models.customer_model import load_model
from tuning.models.model_files import FORMAT
from tuning.models.skops_format import load_skops
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory

QUIET = {"progress": False, "in_process": True}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run, which tests copy before they touch it."""
    folder = tmp_path_factory.mktemp("security")
    write_customers(folder / "data", 2)
    TuneRunner(**definition(folder / "data", trials=2)).run(str(folder / "run"), **QUIET)
    return folder / "run"


# --- names and paths ----------------------------------------------------------------------------

# One byte stands for a character or for something that paths, shells or terminals take in their own way.
HOSTILE = [
    "..", "/", "\\", "../", "..\\", "%2e%2e%2f", "\0", "\n", "~", "con", "a" * 300, "\u202e", "\ud800", "C:", ".",
]  # fmt: skip
SIGNS = (HOSTILE * 8 + [chr(code) for code in range(32, 127)] + list("äßİıKſéあ🦔"))[:256]
NAME = st.binary(max_size=8).map(lambda text: "".join(SIGNS[byte % len(SIGNS)] for byte in text))
HUNDRED = st.lists(NAME, min_size=100, max_size=100)
MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))  # × 100 = 10,000 cases


@MANY
@given(HUNDRED)
def test_no_customers_id_leaves_the_run_or_meets_another_one(ids: list[str]) -> None:
    directory = RunDirectory("/nowhere/runs/weekly")
    folders = {name: directory.path(f"models/{slug(name)}/model.json") for name in ids}
    for path in folders.values():
        assert os.path.normpath(path) == path
        assert os.path.dirname(os.path.dirname(path)) == "/nowhere/runs/weekly/models"
        assert path.isascii()
        assert path.isprintable()
        assert len(os.path.basename(os.path.dirname(path))) <= 60
    assert len({path.lower() for path in folders.values()}) == len(folders)  # also where A and a are the same file


PLACES = (RunDirectory("/nowhere/runs/weekly"), RunDirectory("s3://bucket/runs/weekly?region=us-east-1"))


@MANY
@given(HUNDRED)
def test_no_name_leads_out_of_the_run(names: list[str]) -> None:
    """As a tampered record or plan could hold them: a file below the run, or an error."""
    for directory in PLACES:
        for name in names:
            try:
                path = directory.path(name)
            except StorageError:
                continue
            assert os.path.normpath(path) == path
            assert path.startswith(f"{directory.root}/")


@pytest.mark.parametrize("path", ["../../outside", "/etc", "models/../../outside", ".", ""])
def test_a_record_cannot_name_a_model_elsewhere(run: Path, path: str) -> None:
    with pytest.raises(StorageError, match="is not a file name inside a run directory"):
        load_model(RunDirectory(str(run)), path)


def test_a_run_is_its_owners_only(run: Path) -> None:
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    for path in run.rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_folder_made_beforehand_becomes_its_owners_only(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    (tmp_path / "run").mkdir(mode=0o755)
    TuneRunner(**definition(tmp_path / "data", trials=1)).run(str(tmp_path / "run"), **QUIET)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


# --- YAML ---------------------------------------------------------------------------------------

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
EVIL = "!!python/object/apply:os.system ['touch {marker}']"


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "a: &a {x: *a}",
        "a: &a\n  b: 1\nc:\n  <<: *a",
        "x: " + "[" * 100_000,
        "- " * 100_000,
        "x: " + "{a: " * 5000,
    ],
    ids=["laughs", "recursive", "merge", "deep list", "deep dashes", "deep mapping"],
)
def test_yaml_that_explodes_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError):
        load_yaml(text)
    (tmp_path / "definition.yaml").write_text(text)
    with pytest.raises(DefinitionError):
        read_definition(tmp_path / "definition.yaml")
    (tmp_path / "manifest.yaml").write_text(text)
    with pytest.raises(TuningError):
        TuneRunner(manifest=str(tmp_path / "manifest.yaml"), target="y", mlflow=False).plan()
    from search_spaces.yaml_text import parse_yaml

    with pytest.raises(SpaceError):
        parse_yaml(text)


def test_yaml_builds_no_objects(tmp_path: Path) -> None:
    from search_spaces.yaml_text import parse_yaml

    marker = tmp_path / "marker"
    for text in (f"data: {EVIL.format(marker=marker)}", f"{EVIL.format(marker=marker)}: 1"):
        with pytest.raises(DefinitionError):
            load_yaml(text)
        with pytest.raises(SpaceError):
            parse_yaml(text)
    assert not marker.exists()


# --- nothing is evaluated -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        {"eval": "MARK"},
        {"eval": {"type": "float", "low": 0, "high": 1}},
        {"x": {"eval": "MARK"}},
        {"x": {"type": "choice", "values": [{"eval": "MARK"}, 1]}},
        {"x": {"type": "constant", "value": {"eval": "MARK"}}},
        {"x": {"type": "constant", "value": [{"a": {"eval": "MARK"}}]}},
        {"x": {"type": "constant", "value": {"grid_search": [1, 2]}}},
        {"x": {"type": "float", "low": 0, "high": 1, "default": {"eval": "MARK"}}},
        {"x": {"type": "float", "low": 0, "high": 1, "when": {"eval": "MARK"}}},
    ],
    ids=str,
)
def test_what_ray_would_execute_is_refused(space: dict[str, Any], tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    space = json.loads(json.dumps(space).replace("MARK", f"open('{marker}', 'w')"))
    with pytest.raises((TuningError, SpaceError)):
        TuneRunner(objective="chaos:valley", search_space=space, metric="loss", mode="min", mlflow=False).plan()
    assert not marker.exists()


# Where code is run that came as data, and why that is right. Everything else is refused by the test below.
ALLOWED = {
    ("tuning/user_code.py", "exec_module"): "the user's own file, named in the definition and copied into the run",
    ("tuning/user_code.py", "__import__"): "what that file imports, as Python does it",
    ("tuning/models/own.py", "cloudpickle.loads"): "with allow_code=True only, after its digest was checked",
    ("tuning/data/child_process.py", "cloudpickle.loads"): "what the parent process has just sent by a pipe of its own",
    ("tuning/models/entries.py", "cloudpickle.loads"): "an estimator that this run wrote, by the digest in its plan",
    (
        "tuning/execution/spread/state.py",
        "pickle.loads",
    ): "a state that this run wrote: below its own folder, by its digest",
    (
        "tuning/study/helpers.py",
        "pickle.loads",
    ): "a training's state that another process of this run has just sent by Ray",
    (
        "tuning/evaluation/objective.py",
        "cloudpickle.loads",
    ): "within what Ray has just unpickled: the caller's own function",
}
EVALUATING = {
    "eval", "exec", "compile", "__import__", "exec_module", "execfile", "runpy", "run_path",
    "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.compose", "yaml.load_all",
    "joblib.load", "torch.load", "pickle.Unpickler", "marshal.loads", "marshal.load", "shelve.open",
    "pd.read_pickle", "pandas.read_pickle", "pickle.load", "pickle.loads", "cloudpickle.load", "cloudpickle.loads",
    "dill.loads", "dill.load",
    "mlflow.pyfunc.load_model", "mlflow.sklearn.load_model", "pd.eval", "frame.eval", "frame.query",
}  # fmt: skip


def _product() -> Iterator[tuple[str, ast.AST]]:
    for path in source_files():
        yield path.relative_to(ROOT).as_posix(), parsed(path)


def _suspicious(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            words = {name, name.rpartition(".")[2]} & EVALUATING
            # `re.compile` and `model.eval` are something else; the builtins are called by their bare names.
            if words and not (name not in EVALUATING and words <= {"eval", "exec", "compile"}):
                yield max(words, key=len)
            for keyword in node.keywords:
                on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
                if on and (keyword.arg == "shell" or (keyword.arg == "allow_pickle" and name.startswith("np."))):
                    yield f"{name}({keyword.arg}=True)"
        elif isinstance(node, ast.ImportFrom):  # under their own names they would go unnoticed here
            yield from (name for alias in node.names if (name := f"{node.module}.{alias.name}") in EVALUATING)


def test_nothing_is_evaluated_or_unpickled_outside_of_a_short_list() -> None:
    found = {(file, name) for file, tree in _product() for name in _suspicious(tree)}
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set()  # no entry outlives its reason


def test_the_search_for_evaluation_finds_what_it_is_for() -> None:
    for line, name in {
        "eval('1')": "eval",
        "pickle.loads(x)": "pickle.loads",
        "subprocess.run(x, shell=True)": "subprocess.run(shell=True)",
        "np.load(x, allow_pickle=True)": "np.load(allow_pickle=True)",
        "from pickle import loads": "pickle.loads",
        "spec.loader.exec_module(m)": "exec_module",
    }.items():
        assert list(_suspicious(ast.parse(line))) == [name]
    assert list(_suspicious(ast.parse("re.compile('x'); model.eval()"))) == []


# --- files that were planted --------------------------------------------------------------------


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self.marker, "w")


def test_a_planted_pickle_is_never_loaded(run: Path, tmp_path: Path) -> None:
    """Each file of a run in turn is a pickle that leaves a mark; whatever is read then, none is left."""
    import shutil

    marker = tmp_path / "marker"
    bombs = (pickle.dumps(Bomb(marker)), cloudpickle.dumps(Bomb(marker)))
    pickle.loads(bombs[0]).close()
    assert marker.exists()
    marker.unlink()
    files = [path.relative_to(run) for path in run.rglob("*") if path.is_file()]
    assert len(files) > 8
    for number, name in enumerate(files):
        there = tmp_path / f"run-{number}"
        shutil.copytree(run, there)
        (there / name).write_bytes(bombs[number % 2])
        with contextlib.suppress(RunError):
            result = RunResult(str(there))
            result.trials()
            for customer in result.leaderboard()["customer"]:
                result.model(customer)
        with contextlib.suppress(TuningError):
            TuneRunner.resume(str(there), **QUIET)
        assert not marker.exists(), name


def _planted_model(folder: Path, name: str, content: bytes, own: bool) -> RunDirectory:
    """A run directory with a model as `model.json` would describe it, all digests right."""
    import hashlib

    directory, columns, family = RunDirectory(str(folder)), [["a", "number"]], "mine" if own else "ridge"
    description = {
        "format": FORMAT, "customer": "acme", "family": family, "task": "regression", "classes": [], "width": 0,
        "columns": columns, "example": None, "prepare": None, "final_fit": "all", "residuals": None, "shared": {},
        "encoders": [{"encoding": "frame", "scale": False, "texts": []}],
        "members": [{
            "family": family, "own": own, "columns": columns, "dates": {}, "best_config": {}, "bounds": None,
            "weight": 1.0, "encoder": 0, "model": name,
        }],
        "sha256": {name: hashlib.sha256(content).hexdigest()},
    }  # fmt: skip
    directory.write(f"models/acme/{name}", content)
    directory.write("models/acme/model.json", json.dumps(description).encode())
    return directory


@pytest.mark.parametrize("own", [True, False])
def test_a_pickled_model_needs_the_users_word(tmp_path: Path, own: bool) -> None:
    directory = _planted_model(tmp_path / "run", "model.pkl", cloudpickle.dumps(Bomb(tmp_path / "marker")), own)
    with pytest.raises((RunError, ValueError, TypeError)):
        load_model(directory, "models/acme")
    assert not (tmp_path / "marker").exists()


def test_a_model_file_cannot_name_its_own_types(tmp_path: Path) -> None:
    """skops would load any type that its file names and the caller trusts; ours is the only list."""
    import skops.io
    from sklearn.preprocessing import FunctionTransformer

    content = skops.io.dumps(FunctionTransformer(func=os.system))
    with pytest.raises(RunError, match=r"posix\.system, which are not on the list of trusted types"):
        load_skops(content)
    with pytest.raises(RunError, match="not on the list of trusted types"):
        load_model(_planted_model(tmp_path / "run", "model.skops", content, own=True), "models/acme", allow_code=True)


def test_a_model_is_checked_before_it_is_looked_at(run: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(run, tmp_path / "run")
    file = next((tmp_path / "run" / "models").rglob("model.skops"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    customer = file.relative_to(tmp_path / "run" / "models").parts[0]
    with pytest.raises(RunError, match="is damaged: its SHA-256 is not the recorded one"):
        RunResult(str(tmp_path / "run")).model(customer)


def test_a_spread_trials_state_is_only_read_where_this_run_wrote_it(tmp_path: Path) -> None:
    from tuning.execution.spread.state import STATE, BegunTrial, SavedState, read_state, write_state

    directory = RunDirectory(str(tmp_path / "run"))
    for name in ("run/tune/a", "run/models/a", "elsewhere/tune/a"):
        (tmp_path / name).mkdir(parents=True)
        write_state(str(tmp_path / name), SavedState(5), BegunTrial("acme", "", 0, {}))
    path = str(tmp_path / "run" / "tune" / "a")
    assert read_state(directory, path) == SavedState(5)
    for other in ("run/models/a", "elsewhere/tune/a", "run/tune/gone", "run/tune/../../elsewhere/tune/a"):
        assert read_state(directory, f"{tmp_path}/{other}") is None
    whole = Path(path, STATE).read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole[:-1] + b"x", pickle.dumps(Bomb(tmp_path / "marker"))):
        Path(path, STATE).write_bytes(damaged)
        assert read_state(directory, path) is None
    assert not (tmp_path / "marker").exists()
