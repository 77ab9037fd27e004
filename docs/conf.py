"""Sphinx configuration."""

import re

from docutils import nodes
from latex2mathml.converter import convert

import dbrm

project = "dbrm"
author = "The dbrm developers"
copyright = "2026, The dbrm developers"
version = release = dbrm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"dbrm {release}"

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_use_rtype = False
maximum_signature_line_length = 88

# Formulas are MathML, which browsers draw by themselves: no scripts from the network.
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["math.css"]


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline_math, None), block_renderers=(display_math, None)
    )


def inline_math(writer, node):
    writer.body.append(convert(braced(node.astext())))
    raise nodes.SkipNode


def display_math(writer, node):
    formula = convert(braced(node.astext()), display="block")
    writer.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def braced(latex):
    r"""Spell what the converter does not know: ``\mathcal G`` and aligned equations."""
    latex = re.sub(r"\\(mathcal|mathrm|mathbb)\s+(\w)", r"\\\1{\2}", latex)
    return re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{align*}", latex)
