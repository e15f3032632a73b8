"""What is heavy to load stays unloaded until it is needed; that imports go one way is held by `lint-imports`.

`tuning --help` loads no library beside click. Importing the package, a definition and planning load what reads data
(numpy, pandas, pyarrow), and none that searches or trains: those are imported in the functions that use them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from paths import ROOT

BOOSTERS = {"xgboost", "lightgbm", "catboost"}
SEARCHING = {"ray", "mlflow", "sklearn", "optuna", "hyperopt", "scipy", "torch", "matplotlib"} | BOOSTERS
READING = {"numpy", "pandas", "pyarrow", "pydantic", "yaml"}
RUN_COMMAND = "from click.testing import CliRunner; from tuning.cli.program import main; "
RUN_COMMAND += "answer = CliRunner().invoke(main, sys.argv[1:]); assert answer.exit_code == 0, answer.output"


def loaded(statement: str, *arguments: str) -> set[str]:
    """Which of the libraries are loaded after a statement in a new process."""
    code = f"import sys; {statement}\nprint(*sorted({SEARCHING | READING} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(answer.stdout.split())


def test_importing_loads_nothing_that_searches_or_trains() -> None:
    assert not loaded("import tuning, search_spaces, schedulers, tuning.definition.definition") & SEARCHING


def test_help_loads_nothing() -> None:
    assert not loaded(RUN_COMMAND, "--help")


def test_planning_loads_nothing_that_searches(tmp_path: Path) -> None:
    (tmp_path / "acme.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    (tmp_path / "definition.yaml").write_text("data: acme.csv\ntarget: y\ntask: binary\n")
    # A metric is tried with scikit-learn, so that one that does not fit the task is refused before anything runs.
    assert not loaded(RUN_COMMAND, "plan", str(tmp_path / "definition.yaml")) & (SEARCHING - {"sklearn", "scipy"})


SMALL_RUN = """from tuning import TuneRunner
space = {"parameters": {"x": {"type": "float", "low": 0, "high": 1}}}
given = {"objective": lambda config: config["x"], "search_space": space, "metric": "loss", "mode": "min", "trials": 3}
TuneRunner(**given, mlflow=False, report=False).run(sys.argv[1], in_process=True, progress=False)"""


def test_a_small_run_loads_no_ray(tmp_path: Path) -> None:
    assert not loaded(f"\n{SMALL_RUN}\n", str(tmp_path / "run")) & {"ray", "mlflow", "sklearn"}


def test_an_unknown_algorithm_is_refused_before_libraries_are_loaded(tmp_path: Path) -> None:
    definition = tmp_path / "definition.yaml"
    definition.write_text("data: acme.csv\ntarget: y\n")
    refused = RUN_COMMAND.replace("exit_code == 0", "exit_code == 2 and 'rndom' in answer.stderr")
    assert not loaded(refused, "compare", str(definition), "--algorithms", "rndom,optuna") & SEARCHING


def test_comparing_loads_what_it_computes_with_when_it_is_used() -> None:
    assert not loaded("import tuning.compare") & (SEARCHING | READING)
    assert loaded("from tuning.compare import analyse") & SEARCHING == {"scipy"}
