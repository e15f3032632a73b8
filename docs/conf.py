"""How `make docs` makes a site of these pages; it needs no network, neither to be built nor to be read."""

project = "tuning-service"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
root_doc = "index"
suppress_warnings = ["misc.highlighting_failure"]  # what a command prints stands below it, and is no code

html_theme = "furo"
html_title = project
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


def setup(app):
    app.connect("autodoc-process-docstring", _without_keys)
