"""What is a feature: expressions, their identity and measures, evaluation, text.

Features are built by `covariate`, `modify`, `multiply` and `project`, or read by
`parse_feature`; `evaluate` turns them into columns. Nothing here knows about
models, likelihoods or the search.
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
from dbrm.features.knots import fit_knots, moments, standardize
from dbrm.features.library import TRANSFORMS
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.parametric import hinge, hinge_down, power, step, step_down
from dbrm.features.parsing import parse_feature, write_features
from dbrm.features.projection import Projection, Standardized
from dbrm.features.rendering import NUMPY, PYTHON, SQL, Dialect, apply_expression, render
from dbrm.features.sets import (
    TRANSFORM_SETS,
    get_transform,
    resolve_transforms,
    transform_names,
)
from dbrm.features.transforms import Transform
from dbrm.features.traversal import fold, shape_of, walk
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
    "fit_knots",
    "fold",
    "get_transform",
    "hinge",
    "hinge_down",
    "modify",
    "moments",
    "multiply",
    "parse_feature",
    "power",
    "project",
    "render",
    "resolve_transforms",
    "shape_of",
    "shortened",
    "standardize",
    "step",
    "step_down",
    "training_ranges",
    "transform_names",
    "walk",
    "write_features",
]
