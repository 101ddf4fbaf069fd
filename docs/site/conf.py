"""The settings of Sphinx for the site that `make docs` builds."""

from __future__ import annotations

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "tensorwright"
copyright = "the authors of tensorwright"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = "tensorwright"
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_dark_style = "github-dark"  # that of Furo underlines modules, which then look like links
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]


def setup(app: Sphinx) -> None:
    """Blocks that show what a program prints are plain text."""
    app.add_lexer("output", TextLexer)
