"""The pages of the documentation, and what they show: blocks of code, commands, and code within their text."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paths import ROOT

from search_spaces import SpaceError
from search_spaces.yaml_text import parse_yaml

# Nobody types what a page of decisions shows.
_DOCS = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.md"))]
README = ROOT / "README.md"
PAGES = [README, *(ROOT / path for path in _DOCS if not {"decisions", "_build"} & {*path.parts})]
_FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^ *(?P=fence)[`~]* *$", re.M | re.S)
_DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\}\s*(?P<argument>\S*)")


@dataclass(frozen=True)
class Block:
    """A block of a page. line: its first one, from 1. language: of its fence, empty without one."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """The file that it says it is: the first line is a comment with nothing but the name. Empty without one."""
        first = re.match(r"# ([\w./-]+\.\w+)$", self.text.partition("\n")[0].strip())
        return first[1] if first else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """What somebody types. words: as the shell has them. to: the file that gets its output. shown: what follows it."""

    words: tuple[str, ...]
    to: str = ""
    comment: str = ""
    shown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return shlex.join(self.words)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """All of a page, in their order; those within a directive of the page's generator, too."""
    return list(_blocks(named(page), page.read_text(encoding="utf-8"), 1))


def _blocks(page: str, text: str, first: int) -> Iterator[Block]:
    for found in _FENCE.finditer(text):
        line = first + text.count("\n", 0, found.start()) + 1
        info, inside = found["info"].strip(), textwrap.dedent(found["text"])
        directive = _DIRECTIVE.match(info)
        if directive and not directive["name"].startswith("code"):
            yield from _blocks(page, inside, line)
        else:
            language = directive["argument"] if directive else info.partition(" ")[0]
            yield Block(page, line, language, inside)


def commands(block: Block) -> list[Command]:
    """Those of a console block: lines after `$ `, each with the lines that follow it as what it prints."""
    typed: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            typed.append((line[2:], []))
        elif typed and _goes_on(typed[-1][0]):
            typed[-1] = (f"{typed[-1][0]}\n{line}", [])
        else:
            assert typed, f"{block}: {line!r} comes before the first command, which begins with `$ `"
            typed[-1][1].append(line)
    return [command for text, shown in typed for command in _commands(text, tuple(shown))]


def _goes_on(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return text.endswith("\\")


def _commands(text: str, shown: tuple[str, ...]) -> Iterator[Command]:
    """One for each part between `&&`; what a command prints into another one is nobody's to see."""
    comment = re.search(r"(?:^|\s)# *(.*)$", text)
    words = shlex.split(text, comments=True)
    ends = [place for place, word in enumerate(words) if word == "&&"]
    for start, end in zip([0, *(each + 1 for each in ends)], [*ends, len(words)], strict=True):
        part, to = words[start:end], ""
        if "|" in part:
            part = part[: part.index("|")]
        if ">" in part:
            part, to = part[: part.index(">")], part[part.index(">") + 1]
        last = end == len(words)
        yield Command(tuple(part), to, comment[1] if comment and last else "", shown if last else ())


def code_in_text(page: Path) -> list[str]:
    """What stands between backticks in a page's text, with single spaces."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", text, flags=re.S)
    return [" ".join(code.split()) for _, code in found if "\n\n" not in code]


def alternatives(text: str) -> list[dict[str, Any]]:
    """The values of a block of YAML; one that gives a key twice shows its lines as alternatives."""
    try:
        return [parse_yaml(text)]
    except SpaceError:
        return [parse_yaml(line) for line in text.splitlines()]


def is_definition(values: dict[str, Any]) -> bool:
    """Whether this is a whole one, of which a page may show some keys only."""
    return bool(values.keys() & {"target", "objective"})


def is_other_file(block: Block, values: dict[str, Any]) -> bool:
    """Whether a block of YAML is a file that a definition names, such as a manifest."""
    return bool(block.file) and not is_definition(values) and "parameters" not in values
