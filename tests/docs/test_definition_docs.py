"""What README and docs say of a definition: its keys come from the code, and every YAML shown is valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from key_table import PAGE, written
from keyword_types import MODULE, module_text
from pages import PAGES as NOW
from pages import alternatives, blocks, code_in_text, is_definition, is_other_file, named
from paths import ROOT

from search_spaces import json_schema
from search_spaces.yaml_text import parse_yaml
from tuning.definition.definition import Definition
from tuning.definition.json_schema import definition_schema

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DEFINITION, SPACE = Draft202012Validator(definition_schema()), Draft202012Validator(json_schema())


def test_the_page_shows_all_keys() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert text.count("<!-- keys -->") == 1
    assert text == written(text), "python docs/key_table.py writes what belongs there"


def test_editors_know_the_keys_as_the_definition_has_them() -> None:
    found = (ROOT / MODULE).read_text(encoding="utf-8")
    assert found == module_text(), "python docs/keyword_types.py writes what belongs there"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_an_example_is_valid(path: Path) -> None:
    assert problems(parse_yaml(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_yaml_of_a_page_is_valid(page: Path) -> None:
    for block in [block for block in blocks(page) if block.language == "yaml"]:
        shown = [values for values in alternatives(block.text) if not is_other_file(block, values)]
        assert [problems(values) for values in shown if problems(values)] == [], str(block)


@pytest.mark.parametrize("page", NOW, ids=named)
def test_a_key_within_a_text_is_valid(page: Path) -> None:
    """With its value: `placement: packed`. A parameter of a search space may be called `target`, too."""
    whole = [code for code in code_in_text(page) if re.match(r"\w+: \S", code) and "…" not in code]
    given = [code for code in whole if code.partition(":")[0] in Definition.model_fields.keys() - {"target"}]
    assert [code for code in given if problems(parse_yaml(code))] == []


def problems(values: Any) -> list[str]:
    """What the schema finds: that of a search space, or that of a definition, of which a page may show some keys."""
    if "parameters" in values:
        return [error.message for error in SPACE.iter_errors(values)]
    whole = values if is_definition(values) else {**values, "target": "y"}
    return [error.message for error in DEFINITION.iter_errors(whole)]
