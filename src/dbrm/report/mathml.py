"""Formulas for browsers: LaTeX becomes MathML, which they draw without scripts or fonts."""

import re
from html import escape
from xml.etree import ElementTree

from dbrm.features import Feature, covariate
from dbrm.features.export import latex_number
from dbrm.posterior import FittedModel

__all__ = ["effect_mathml", "feature_mathml", "model_mathml", "number_mathml"]

# Words in LaTeX: names of columns, effects and functions, with their special characters escaped.
_WORDS = re.compile(r"\\(?:mathrm|text|operatorname)\{((?:\\text\w+\{\}|\\.|[^{}\\])*)\}")
_ESCAPED = re.compile(r"\\(text\w+\{\}|.)")
_LONG = {"textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^"}
_LINKED = re.compile(r"(\w+)\(E\[(.*)\]\)", re.DOTALL)
# Elements of MathML, and what shows that LaTeX was not understood.
_NAMESPACE, _LEFT = "{http://www.w3.org/1998/Math/MathML}m", re.compile(r"[\\{}]|(?<!&)#")
# A private character stands for each of the words while the formula is converted.
_FIRST = 0xE000


def feature_mathml(feature: Feature, digits: int = 4) -> str:
    """A ``math`` element for one feature, weights to `digits` significant digits."""
    return _mathml(feature.to_latex(digits=digits), str(feature))


def effect_mathml(name: str) -> str:
    """A ``math`` element for the name of a latent effect."""
    return _mathml(covariate(name).to_latex(), name)


def number_mathml(value: float, digits: int = 4) -> str:
    """A ``math`` element for a number, with a power of ten where it needs one."""
    return _mathml(latex_number(value, digits), f"{value:.{digits}g}")


def model_mathml(model: FittedModel, digits: int = 4) -> list[str]:
    """The formula of a model as ``math`` elements, each of which may start a line.

    First the left side with the equals sign, then the intercept, then every term with its
    sign: browsers do not break lines inside an element.
    """
    intercept, *slopes = model.fit.coefficients.tolist()
    parts = [(f"{_left_side(model.response)} =", f"{model.response} =")]
    if model.fit.has_intercept or not slopes:
        parts.append((latex_number(intercept, digits), f"{intercept:.{digits}g}"))
    for slope, term in zip(slopes, model.terms, strict=True):
        sign, number = "-" if slope < 0 else "+", latex_number(abs(slope), digits)
        # Without an intercept the first term needs no plus.
        signed = number if len(parts) == 1 and sign == "+" else f"{{}} {sign} {number}"
        latex = rf"{signed} \, {term.to_latex(digits=digits)}"
        parts.append((latex, f"{sign} {abs(slope):.{digits}g}*{term}"))
    parts += [(f"{{}} + {covariate(name).to_latex()}", f"+ {name}") for name in model.latent]
    return [_mathml(latex, text) for latex, text in parts]


def _left_side(text: str) -> str:
    linked = _LINKED.fullmatch(text)
    if linked is None:
        return covariate(text).to_latex()
    mean = rf"\mathrm{{E}}\left[{covariate(linked[2]).to_latex()}\right]"
    return rf"\mathrm{{{linked[1]}}}\left({mean}\right)"


def _mathml(latex: str, text: str) -> str:
    """A formula as MathML; as plain text if its LaTeX, a user's own, cannot be converted."""
    from latex2mathml.converter import convert

    words: list[str] = []

    def take(match: re.Match[str]) -> str:
        words.append(_ESCAPED.sub(lambda part: _LONG.get(part[1], part[1]), match[1]))
        return f"{{{chr(_FIRST + len(words) - 1)}}}"

    # The converter would split names into letters, and would not escape them.
    latex = _WORDS.sub(take, latex).replace(r"\,", r"\cdot")
    try:
        math = convert(latex)
        sound = _is_mathml(math)
    # It has many errors of its own, without a common class.
    except Exception:
        sound = False
    if not sound:
        return f'<math display="inline">{_word(text)}</math>'
    math = math.replace("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>')
    for number, word in enumerate(words):
        math = math.replace(f"<mi>{chr(_FIRST + number)}</mi>", _word(word))
    return math


def _is_mathml(math: str) -> bool:
    """Whether this is MathML, with no command or brace of LaTeX left in it."""
    tags = [node.tag for node in ElementTree.fromstring(math).iter()]
    return all(tag.startswith(_NAMESPACE) for tag in tags) and not _LEFT.search(math)


def _word(word: str) -> str:
    """Several letters, upright; blanks do not break, or the name would be cut there."""
    shown = escape(word).replace(" ", chr(0xA0))
    upright = ' mathvariant="normal"' if len(word) == 1 else ""
    return f"<mi{upright}>{shown}</mi>" if word.isidentifier() else f"<mtext>{shown}</mtext>"
