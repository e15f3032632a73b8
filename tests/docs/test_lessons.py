"""The lessons, `examples/*.ipynb`, run from top to bottom in a real kernel, and show what is stored in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lessons import LESSONS, code_cells, executed, read, texts_of
from nbformat import NotebookNode
from paths import ROOT

# The lessons that work on a Ray cluster: here it is the tests' own.
ON_RAY = {"08_forest_sweep", "10_xgboost_ray", "11_ray_train"}
QUICK = {"02_your_own_objective"}  # the one of a few seconds; the rest: make chaos
EXACT = "exact"  # the tag of a cell that shows the same wherever it runs, to the last digit
PATH = re.compile(r"(?<![\w.…:/<-])/[\w.-]+/|\b[A-Z]:\\")
CHATTER = re.compile(r"warning|traceback|\b0x[0-9a-f]{6,}", re.IGNORECASE)


def named(lesson: Path) -> str:
    return lesson.stem


def kinds(cell: NotebookNode) -> list[tuple[str, list[str]]]:
    """What a cell shows, without its content."""
    return [(output.output_type, sorted(output.get("data", [output.get("name", "")]))) for output in cell.outputs]


CASES = [
    pytest.param(each, marks=[pytest.mark.ray] * (each.stem in ON_RAY) + [pytest.mark.slow] * (each.stem not in QUICK))
    for each in LESSONS
]


@pytest.mark.parametrize("lesson", CASES, ids=named)
def test_a_lesson_shows_what_is_stored_in_it(lesson: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    variables = address(request) if lesson.stem in ON_RAY else {}
    cells = zip(code_cells(executed(lesson, tmp_path, **variables)), code_cells(read(lesson)), strict=True)
    for now, stored in cells:
        assert kinds(now) == kinds(stored), stored.source
        if EXACT in stored.metadata.get("tags", ()):
            assert now.outputs == stored.outputs, stored.source


def address(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment variable by which a kernel finds the tests' own cluster."""
    request.getfixturevalue("ray_cluster")
    import ray

    return {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}


@pytest.mark.parametrize("lesson", LESSONS, ids=named)
def test_what_is_stored_has_run_in_order_and_names_no_machine(lesson: Path) -> None:
    notebook = read(lesson)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "make lessons"
    shown = "\n".join(texts[key] for cell in cells for texts, key in texts_of(cell))
    assert PATH.findall(shown) == []
    assert CHATTER.findall(shown) == []
    assert any(EXACT in cell.metadata.get("tags", ()) for cell in cells), "a figure that is always the same"
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("lesson", LESSONS, ids=named)
def test_a_lesson_begins_with_its_aim_and_ends_with_what_to_read_next(lesson: Path) -> None:
    cells = read(lesson).cells
    first, last = cells[0], cells[-1]
    assert (first.cell_type, last.cell_type) == ("markdown", "markdown")
    assert first.source.startswith("# ")
    assert re.search(r"\]\(\.\./docs/[\w-]+\.md", last.source)
    kinds = "".join(cell.cell_type[0] for cell in cells)
    assert "ccc" not in kinds, "what a reader sees is said after it"


def test_the_readme_lists_every_lesson() -> None:
    listed = re.findall(r"\]\((examples/\w+\.ipynb)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert listed == [str(lesson.relative_to(ROOT)) for lesson in LESSONS]
