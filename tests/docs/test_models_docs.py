"""The table of families in docs/models.md is the registry's."""

from __future__ import annotations

from paths import ROOT

from tuning.models.base import Family, SteppedFamily
from tuning.models.registry import families

PAGE = ROOT / "docs" / "models.md"
ENCODINGS = {"onehot": "indicators, filled", "ordinal": "native"}


def row(family: Family) -> str:
    steps = "folds"
    if isinstance(family, SteppedFamily):
        steps = f"{family.total_steps} × {family.step_length} (`{family.length}`)"
    encoding = ENCODINGS[family.encoding] + (", scaled" if family.scale else "")
    simpler = ", ".join(f"{direction} `{name}`" for name, direction in family.simpler)
    tasks = ", ".join(sorted(family.tasks))
    return f"| `{family.name}` | {tasks} | {steps} | {encoding} | `{family.file}` | {simpler} |"


def test_the_table_is_the_registry() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("**Steps.**")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == [row(family) for _, family in sorted(families().items())]
