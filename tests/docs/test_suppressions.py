"""Every suppressed complaint of a checker says why it may be."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

from paths import ROOT

SUPPRESSION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|nosec|pyright)\b")
REASON = re.compile(r"#\s*(noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])(  # | - )\w")
FOLDERS = ("tuning", "search_spaces", "schedulers", "benchmarks", "examples", "tests")


def without_a_reason(path: Path) -> list[str]:
    """The comments of a file that suppress something and do not say why."""
    if not SUPPRESSION.search(path.read_text(encoding="utf-8")):  # looking at every token takes much longer
        return []
    with path.open("rb") as stream:
        comments = [token for token in tokenize.tokenize(stream.readline) if token.type == tokenize.COMMENT]
    return [
        f"{path.relative_to(ROOT)}:{comment.start[0]} {comment.string}"
        for comment in comments
        if SUPPRESSION.match(comment.string) and not REASON.match(comment.string)
    ]


def test_every_suppression_names_its_rule_and_its_reason() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert [found for path in files for found in without_a_reason(path)] == [], "add the reason: `# noqa: T201  # why`"
