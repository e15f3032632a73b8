"""How `make docs` makes a site of these pages; it needs no network, neither to be built nor to be read."""

import base64
import json
import re
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FENCE = "`" * 8
TERMINAL = re.compile(r"\x1b\[[\d;]*m")

project = "tuning-service"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".lesson": "markdown"}  # lessons are written here from examples/*.ipynb
exclude_patterns = ["_build"]
root_doc = "index"
suppress_warnings = ["misc.highlighting_failure"]  # what a command prints stands below it, and is no code

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_copyright = False

myst_heading_anchors = 4  # as GitHub has them
smartquotes = False  # as it is written

default_role = "literal"  # docstrings write `name`, as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88


def _without_keys(_app, _what, name, _object, _options, lines):
    """The keys of a definition have a page of their own, definition.md."""
    if name == "tuning.TuneRunner" and "The keys:" in (said := [line.strip() for line in lines]):
        del lines[said.index("The keys:") :]


def _write_lessons(app):
    """Each notebook becomes a page in `lessons/`, with what it shows."""
    folder = Path(app.srcdir) / "lessons"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for notebook in EXAMPLES.glob("*.ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        blocks = [block for cell in cells for block in _blocks(cell, folder, f"{notebook.stem}-{cell['id']}")]
        (folder / f"{notebook.stem}.lesson").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _blocks(cell, folder, name):
    """The Markdown of a cell; its pictures are files in the folder, whose names begin with `name`."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        source = source.replace("](../docs/", "](../").replace("](../tuning/", "](../../tuning/")
        source = re.sub(r"\]\((\w+)\.ipynb", r"](\1.lesson", source)
        return [re.sub(r"\]\((\w+\.(?:py|yaml))\)", r"](../../examples/\1)", source)]
    blocks = [f"{FENCE}python\n{source}\n{FENCE}"]
    for number, output in enumerate(cell["outputs"]):
        shown = {"text/plain": output.get("text", "")} | output.get("data", {})
        if "image/png" in shown:
            picture = folder / f"{name}-{number}.png"
            picture.write_bytes(base64.b64decode(shown["image/png"]))
            blocks.append(f"![what the cell above draws]({picture.name})")
        elif "text/html" in shown:
            blocks.append(f"{FENCE}{{raw}} html\n{''.join(shown['text/html'])}\n{FENCE}")
        else:
            blocks.append(f"{FENCE}text\n{TERMINAL.sub('', ''.join(shown['text/plain']))}\n{FENCE}")
    return blocks


def _link_lessons(_app, _page, source):
    """On GitHub a page links a notebook; here its page."""
    source[0] = re.sub(r"\]\(\.\./examples/(\w+)\.ipynb\)", r"](lessons/\1.lesson)", source[0])


def setup(app):
    app.connect("builder-inited", _write_lessons)
    app.connect("source-read", _link_lessons)
    app.connect("autodoc-process-docstring", _without_keys)
