"""Imports go one way, and planning stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

# Each module may import those before it, never one behind it. Packages stand for all their modules.
ORDER = [
    "tuning.errors",
    "tuning.seeds",
    "tuning.steps",
    "tuning.task",
    "tuning.storage.retrying",
    "tuning.storage.s3",
    "tuning.storage.run_directory",
    "tuning.records",
    "tuning.evaluation.fast_scores",
    "tuning.evaluation.metrics",
    "tuning.code",
    "tuning.preprocessing.columns",
    "tuning.preprocessing.encoding",
    "tuning.preprocessing.roles",
    "tuning.preprocessing.splitting",
    "tuning.models",
    "tuning.models.entries",
    "tuning.planning.model_space",
    "tuning.evaluation.study_data",
    "tuning.evaluation.objective",
    "tuning.report",
    "tuning.definition.options",
    "tuning.definition.methods",
    "tuning.study.warm_start",
    "tuning.definition.definition",
    "tuning.definition.yaml_file",
    "tuning.data.reading",
    "tuning.data.files",
    "tuning.data.keys",
    "tuning.data.keyed_tables",
    "tuning.data.manifest",
    "tuning.data.balancing",
    "tuning.data.customers",
    "tuning.data.partition",
    "tuning.data.loading",
    "tuning.data.sampling",
    "tuning.study.trial",
    "tuning.study.controller_view",
    "tuning.study.interleaved",
    "tuning.study.loop",
    "tuning.study.mutations",
    "tuning.planning.pbt_checks",
    "tuning.study",
    "tuning.plan",
    "tuning.records.ownership",
    "tuning.records.lease",
    "tuning.records.parts",
    "tuning.run",
    "tuning.runs.resume",
    "tuning.runs.begin",
    "tuning.evaluation.winner",
    "tuning.storage.background",
    "tuning.execution.study_run",
    "tuning.execution.quarantine",
    "tuning.execution.crash_log",
    "tuning.execution.limits",
    "tuning.execution.packed",
    "tuning.driver.progress",
    "tuning.runs.results",
    "tuning.tracking",
    "tuning.execution.cluster",
    "tuning.execution.spread",
    "tuning.driver.signals",
    "tuning.driver.halt",
    "tuning.execution.shard_queue",
    "tuning.driver.tuner",
    "tuning.driver.runner",
    "tuning.compare",
    "tuning.planning.validation",
    "tuning.runs.prediction",
    "tuning.cli.starter",
    "tuning.cli.main",
    "tuning.cli.compare",
    "tuning.commands",
]
LEAVES = ("search_spaces", "schedulers")


def modules() -> dict[str, Path]:
    found = {}
    for package in ("tuning", *LEAVES):
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imported(path: Path) -> set[str]:
    """Names of our own modules that a file imports anywhere, also inside functions, except for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name for name in names if name.split(".")[0] in ("tuning", *LEAVES)}


def position(name: str) -> int | None:
    """Of the longest entry that holds the module."""
    entries = [entry for entry in ORDER if name == entry or name.startswith(entry + ".")]
    return ORDER.index(max(entries, key=len)) if entries else None


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_go_one_way(name: str) -> None:
    wanted = imported(modules()[name])
    top = name.split(".")[0]
    if top in LEAVES:
        strangers = {other for other in wanted if other.split(".")[0] != top}
        assert not strangers, f"{name} imports {strangers}; {top} stands alone"
        return
    if name == "tuning":
        return
    own = position(name)
    assert own is not None, f"{name} has no place in ORDER"
    behind = {other for other in wanted if (where := position(other)) is not None and where > own}
    assert not behind, f"{name} imports {behind}, which stand behind it"


@pytest.mark.parametrize(
    "statement",
    [
        "import tuning",
        "import search_spaces",
        "import schedulers",
        "import tuning.cli.main",
        "import tuning.definition.definition",
    ],
)
def test_importing_is_light(statement: str) -> None:
    code = f"{statement}; import sys; print([m for m in ('ray', 'mlflow', 'sklearn', 'optuna') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"
