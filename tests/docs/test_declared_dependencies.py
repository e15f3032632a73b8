"""Every library that the product imports is one that it declares: nothing is there only because another brings it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib

from paths import ROOT
from sources import PACKAGES, parsed, source_files

# Import names that are not the distribution's own.
DISTRIBUTIONS = {
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "psycopg2": "psycopg2-binary",
    "ax": "ax-platform",
    "bayes_opt": "bayesian-optimization",
}
# HEBO asks for a numpy that no other dependency works with, so no extra can name it; the registry does, and asking for
# it says what to install (docs/algorithms.md).
BY_REGISTRY = {"hebo"}


def imported() -> dict[str, str]:
    """Top-level names of other people's packages, each with a file that imports it; imports for types count too."""
    found: dict[str, str] = {}
    for path in source_files():
        for node in ast.walk(parsed(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                found.setdefault(name.partition(".")[0], str(path.relative_to(ROOT)))
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names and name not in PACKAGES}


def declared() -> set[str]:
    """Names of distributions in the dependencies and in the extras that users install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines]
    return {_normal(re.split(r"[\[<>=!~; ]", line)[0]) for line in [*project["dependencies"], *extras]}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_import_is_declared() -> None:
    known = declared()
    missing = {
        name: path
        for name, path in imported().items()
        if _normal(DISTRIBUTIONS.get(name, name)) not in known and name not in BY_REGISTRY
    }
    assert not missing, f"add to pyproject.toml: {missing}"
