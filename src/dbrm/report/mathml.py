"""Features and models typeset for browsers: MathML from the expression tree.

All current browsers draw MathML without scripts or fonts from elsewhere.
"""

import re
from collections import Counter
from collections.abc import Sequence
from html import escape

from dbrm.features import (
    Covariate,
    Feature,
    Modification,
    Product,
    Projection,
    Standardized,
    Transform,
    fold,
)
from dbrm.posterior import FittedModel
from dbrm.report.latex_mathml import UnknownLatexError, latex_to_mathml, mathml_number

__all__ = ["effect_mathml", "feature_mathml", "model_mathml"]

_INDEXED = re.compile(r"([A-Za-z])_?([0-9]+)")
_LINKED = re.compile(r"(\w+)\(E\[(.*)\]\)", re.DOTALL)
NO_BREAK = "\u00a0"
_TIMES = '<mo rspace="0.16em" lspace="0.16em">⋅</mo>'


def feature_mathml(feature: Feature, digits: int = 4) -> str:
    """A whole ``math`` element for one feature, weights to so many significant digits."""
    return _math(_feature(feature, digits))


def effect_mathml(name: str) -> str:
    """A whole ``math`` element for the name of a latent effect."""
    return _math(_effect(name))


def _effect(name: str) -> str:
    return f"<mtext>{escape(name).replace(' ', NO_BREAK)}</mtext>"


def model_mathml(model: FittedModel, digits: int = 4) -> list[str]:
    """The formula of a model as ``math`` elements that may stand on lines of their own.

    First the left side with the equals sign, then the intercept, then every term with
    its sign: browsers do not break lines inside an element.
    """
    intercept, *slopes = model.fit.coefficients.tolist()
    parts = [_left_side(model.response) + "<mo>=</mo>", mathml_number(intercept, digits)]
    for slope, term in zip(slopes, model.terms, strict=True):
        sign = "−" if slope < 0 else "+"
        number, inside = mathml_number(abs(slope), digits), _feature(term, digits)
        parts.append(f'<mo form="infix">{sign}</mo>{number}{_TIMES}{inside}')
    parts += [f'<mo form="infix">+</mo>{_effect(name)}' for name in model.latent]
    return [_math(part) for part in parts]


def _math(inside: str) -> str:
    return f'<math display="inline">{inside}</math>'


def _left_side(text: str) -> str:
    linked = _LINKED.fullmatch(text)
    if linked is None:
        return _name(text)
    mean = f'<mi mathvariant="normal">E</mi><mo>[</mo>{_name(linked[2])}<mo>]</mo>'
    return f"<mrow><mi>{escape(linked[1])}</mi><mo>\u2061</mo><mo>(</mo>{mean}<mo>)</mo></mrow>"


def _feature(feature: Feature, digits: int) -> str:
    def typeset(node: Feature, children: Sequence[str]) -> str:
        match node:
            case Covariate():
                return _name(node.name)
            case Product():
                return _product(node, children)
            case Projection():
                return _applied(node.transform, _sum(node, children, digits), node.knot, digits)
            case Standardized():
                return _standardized(node, children[0], digits)
            case Modification():
                return _applied(node.transform, children[0], node.knot, digits)
        raise AssertionError(node)

    return fold(feature, typeset)


def _name(name: str) -> str:
    if indexed := _INDEXED.fullmatch(name):
        return f"<msub><mi>{indexed[1]}</mi><mn>{indexed[2]}</mn></msub>"
    kind = "mi" if name.isidentifier() else "mtext"
    # Blanks that do not break: a browser would cut the name there.
    return f"<{kind}>{escape(name).replace(' ', NO_BREAK)}</{kind}>"


def _product(node: Product, factors: Sequence[str]) -> str:
    kinds = dict(zip(factors, node.factors, strict=True))
    parts = []
    for factor, multiplicity in Counter(factors).items():
        bare = isinstance(kinds[factor], Covariate)
        base = factor if bare else f"<mrow><mo>(</mo>{factor}<mo>)</mo></mrow>"
        power = f"<msup>{base}<mn>{multiplicity}</mn></msup>"
        parts.append(power if multiplicity > 1 else factor)
    return f"<mrow>{_TIMES.join(parts)}</mrow>"


def _sum(node: Projection, children: Sequence[str], digits: int) -> str:
    parts = [] if node.bias is None else [mathml_number(node.bias, digits)]
    for weight, child in zip(node.weights, children, strict=True):
        sign = "" if not parts else f'<mo form="infix">{"−" if weight < 0.0 else "+"}</mo>'
        number = mathml_number(abs(weight) if parts else weight, digits)
        parts.append(f"{sign}{number}{_TIMES}{child}")
    return f"<mrow>{''.join(parts)}</mrow>"


def _standardized(node: Standardized, child: str, digits: int) -> str:
    assert node.centre is not None
    assert node.scale is not None
    sign = f'<mo form="infix">{"−" if node.centre >= 0.0 else "+"}</mo>'
    above = f"<mrow>{child}{sign}{mathml_number(abs(node.centre), digits)}</mrow>"
    return f"<mfrac>{above}{mathml_number(node.scale, digits)}</mfrac>"


def _applied(transform: Transform, inside: str, knot: float | None, digits: int) -> str:
    if knot is None:
        shown = f"<msub><mi>q</mi><mn>{transform.quantile}</mn></msub>"
    else:
        shown = mathml_number(knot, digits)
    try:
        return (
            latex_to_mathml(transform.latex or "", (inside, shown))
            if transform.latex
            else (_called(transform.name, inside))
        )
    except UnknownLatexError:
        return _called(transform.name, inside)


def _called(name: str, inside: str) -> str:
    """A function by its name, where its LaTeX is unknown or beyond the reader."""
    return f"<mrow><mi>{escape(name)}</mi><mo>\u2061</mo><mo>(</mo>{inside}<mo>)</mo></mrow>"
