"""`make docs`: the site is built without a warning, has every page, and needs no network."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from command_table import PAGE, written
from lessons import LESSONS, code_cells, read
from paths import ROOT

import tuning
from tuning import errors
from tuning.cli.program import COMMANDS
from tuning.definition.definition import Definition

DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS) for page in DOCS.rglob("*.md") if "_build" not in page.parts)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        folder / "doctrees",
        DOCS,
        folder / "html",
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    return folder / "html"


def text_of(page: Path) -> str:
    """What somebody reads."""
    body = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", body)))


def test_every_page_is_there_and_can_be_reached(site: Path) -> None:
    reached = set(re.findall(r'href="([^"#]+\.html)', (site / "index.html").read_text(encoding="utf-8")))
    for page in PAGES:
        title = re.findall(r"^# (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.M)[0]
        assert title.replace("`", "") in text_of(site / page.with_suffix(".html")), page
        assert page.parent.name == "decisions" or page.with_suffix(".html").as_posix() in {*reached, "index.html"}
    notes = (site / "decisions" / "README.html").read_text(encoding="utf-8")
    themes = {page.stem for page in PAGES if page.parent.name == "decisions"} - {"README"}
    assert themes <= set(re.findall(r'href="([\w-]+)\.html"', notes))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_is_a_page_with_what_it_shows(site: Path, lesson: Path) -> None:
    page = site / "lessons" / f"{lesson.stem}.html"
    html, text = page.read_text(encoding="utf-8"), text_of(page)
    notebook = read(lesson)
    assert notebook.cells[0].source.splitlines()[0].removeprefix("# ") in text
    assert f'href="lessons/{page.name}"' in (site / "index.html").read_text(encoding="utf-8")
    assert "".join(code_cells(notebook)[-1].source.split()) in "".join(text.split())
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert html.count("what the cell above draws") == sum("image/png" in output.get("data", {}) for output in outputs)
    printed = [output.text.split()[0] for output in outputs if output.get("name") == "stdout"]
    assert [word for word in printed if word not in text] == []
    links = [link for link in re.findall(r'href="([^"#]+)', html) if ":" not in link and not link.startswith("//")]
    assert [link for link in links if not (page.parent / link.split("?")[0]).exists()] == []
    assert not [link for link in links if link.endswith(".ipynb")]


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img|iframe|source|object)\b[^>]*>", page.read_text(encoding="utf-8"))
        assert [tag for tag in tags if re.search(r"""(?:src|href|data)=["'](?:https?:)?//""", tag)] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_the_references_have_every_name(site: Path) -> None:
    python, definition, commands = (text_of(site / f"{name}.html") for name in ("python", "definition", "commands"))
    assert [name for name in tuning.__all__ if f"tuning.{name}(" not in python] == []
    assert "row per customer; every customer of the plan is there exactly once." in python
    ours = [name for name, what in vars(errors).items() if isinstance(what, type) and issubclass(what, BaseException)]
    assert [name for name in ours if name not in python] == []
    assert [name for name in Definition.model_fields if not re.search(rf" {name}[ :]", definition)] == []
    assert [name for name in COMMANDS if f"tuning {name}" not in commands] == []


def test_the_page_on_commands_has_what_their_help_says() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page == written(page), "python docs/command_table.py writes what belongs there"


def test_the_picture_shows_the_order_of_imports(site: Path) -> None:
    spec = importlib.util.spec_from_file_location("picture", DOCS / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    assert picture.FILE.read_text(encoding="utf-8") == picture.svg(), "python docs/picture.py draws it"
    assert "architecture.svg" in (site / "architecture.html").read_text(encoding="utf-8")
