"""The picture of docs/architecture.md, drawn from the order of imports that `make lint` holds.

python docs/picture.py     # writes docs/architecture.svg; a test compares them
"""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "architecture.svg"
WIDTH, LEFT, GAP, PAD, LINE = 880, 44, 7, 9, 16
CHARACTER = 6.6  # width of one, at 12 px
BESIDE = 130  # from a name to its question, where these are in one line
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333c4a; }
  .name { font-weight: 600; font-size: 13px; fill: #14213d; }
  .page { fill: #ffffff; }
  .box { fill: #eef3fb; stroke: #9db4d6; }
  .beside { fill: #f6f1e6; stroke: #cdb88a; }
  .arrow { stroke: #7a8699; stroke-width: 1.5; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #c9d3e0; } .name { fill: #ffffff; } .page { fill: #161b22; }
    .box { fill: #1f2a3a; stroke: #47618a; } .beside { fill: #2c271b; stroke: #7d6c41; }
  }"""


def contract(name: str) -> list[str]:
    """The layers of one of the contracts on imports, from the top to the bottom."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return next(list(each["layers"]) for each in settings["contracts"] if each["name"] == name)


def layers() -> list[list[str]]:
    """The packages of `tuning/`; those of one layer do not import each other."""
    return [re.split(" [:|] ", layer) for layer in contract("Packages import one way")]


def beside() -> list[str]:
    """The packages below `tuning/` that stand alone."""
    return contract("Search spaces and schedulers stand alone")[-1].split(" | ")


def questions() -> dict[str, str]:
    """What each package answers: as the page lists them, and as those that stand alone say of themselves."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("<!-- packages -->")[1]
    found = dict(re.findall(r"^([a-z_]+)  +(.+)$", page.split("<!-- /packages -->")[0], flags=re.M))
    for name in beside():
        said = ast.get_docstring(ast.parse((ROOT / name / "__init__.py").read_text(encoding="utf-8"))) or ""
        found[name] = f"{said.partition(':')[0]}."
    return found


def svg() -> str:
    """The picture: a row for each layer."""
    said, parts, top = questions(), [], PAD
    for names, kind in [*[(names, "box") for names in layers()], (beside(), "beside")]:
        width, alone = (WIDTH - LEFT - PAD - GAP * (len(names) - 1)) / len(names), len(names) == 1
        texts = [[said[name]] if alone else wrap(said[name], int((width - 2 * PAD) / CHARACTER)) for name in names]
        height = PAD * 1.5 + LINE * (max(map(len, texts)) + (not alone))
        for place, (name, lines) in enumerate(zip(names, texts, strict=True)):
            x, base = LEFT + place * (width + GAP), top + PAD + LINE * 0.7
            first = (x + BESIDE, base) if alone else (x + PAD, base + LINE)
            parts.append(f'<rect class="{kind}" x="{x:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="5"/>')
            parts.append(_text(x + PAD, base, name, ' class="name"'))
            parts += [_text(first[0], first[1] + number * LINE, line) for number, line in enumerate(lines)]
        top += height + GAP
    down = f'<path class="arrow" d="M 22 {PAD + 4} V {top - GAP - 6} m -5 -8 l 5 8 l 5 -8"/>'
    turned = f'<text transform="translate(16 {top / 2:.0f}) rotate(-90)" text-anchor="middle">may import</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:g}" role="img">'
    title = "<title>The packages, from what users touch to what everything uses</title>"
    page = f'<rect class="page" width="{WIDTH}" height="{top:g}" rx="8"/>'
    return "\n".join([head, title, f"<style>{STYLE}\n</style>", page, down, turned, *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text{more} x="{x:g}" y="{y:g}">{escape(text)}</text>'


if __name__ == "__main__":
    FILE.write_text(svg(), encoding="utf-8")
