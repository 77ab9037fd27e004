"""Features: expressions, their identity and complexity, evaluation, text.

The expression tree: `base`, `nodes`, `projection`, `building` (functions that build features),
`traversal`. Functions g: `transforms` (the class), `library` (built-in), `parametric` (with a
knot or an exponent), `sets` (names and named sets). Numbers: `evaluation`, `knots` (what is
learnt from training rows), `two_valued`. Text: `tokens` and `parsing` read it, `export` writes
SymPy and LaTeX, `rendering` Python, NumPy and SQL.

Nothing here knows about models, likelihoods or the search.
"""

from dbrm.features.base import Feature
from dbrm.features.building import covariate, modify, multiply, project, shortened
from dbrm.features.evaluation import (
    ColumnCache,
    Ranges,
    column_status,
    evaluate,
    training_ranges,
)
from dbrm.features.interval import REALS, Interval
from dbrm.features.knots import fit_knots, knot_after, moments, shortest_between, standardize
from dbrm.features.library import TRANSFORMS
from dbrm.features.nesting import NestingRule
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.parametric import hinge, hinge_down, power, step, step_down
from dbrm.features.parsing import parse_feature, write_features
from dbrm.features.projection import Projection, Standardized
from dbrm.features.rendering import (
    NUMPY,
    PYTHON,
    SQL,
    Dialect,
    apply_expression,
    expression_tree,
    render,
)
from dbrm.features.sets import (
    TRANSFORM_SETS,
    get_transform,
    resolve_transforms,
    transform_names,
)
from dbrm.features.transforms import Transform
from dbrm.features.traversal import fold, topology_of, walk
from dbrm.features.two_valued import TwoValued

__all__ = [
    "NUMPY",
    "PYTHON",
    "REALS",
    "SQL",
    "TRANSFORMS",
    "TRANSFORM_SETS",
    "ColumnCache",
    "Covariate",
    "Dialect",
    "Feature",
    "Interval",
    "Modification",
    "NestingRule",
    "Product",
    "Projection",
    "Ranges",
    "Standardized",
    "Transform",
    "TwoValued",
    "apply_expression",
    "column_status",
    "covariate",
    "evaluate",
    "expression_tree",
    "fit_knots",
    "fold",
    "get_transform",
    "hinge",
    "hinge_down",
    "knot_after",
    "modify",
    "moments",
    "multiply",
    "parse_feature",
    "power",
    "project",
    "render",
    "resolve_transforms",
    "shortened",
    "shortest_between",
    "standardize",
    "step",
    "step_down",
    "topology_of",
    "training_ranges",
    "transform_names",
    "walk",
    "write_features",
]
