"""What is a feature: expressions, their identity and measures, evaluation, text.

Features are built by `covariate`, `modify`, `multiply` and `project`, or read by
`parse_feature`; `evaluate` turns them into columns. Nothing here knows about
models, likelihoods or the search.
"""

from dbrm.features.base import Feature
from dbrm.features.binary import drop_binary_powers
from dbrm.features.building import covariate, modify, multiply, project, shortened
from dbrm.features.evaluation import ColumnCache, column_status, evaluate
from dbrm.features.families import hinge, hinge_down, power, step, step_down
from dbrm.features.interval import REALS, Interval
from dbrm.features.knots import fit_knots
from dbrm.features.library import TRANSFORMS
from dbrm.features.nodes import Covariate, Modification, Product, Projection
from dbrm.features.parsing import parse_feature
from dbrm.features.rendering import NUMPY, PYTHON, SQL, Dialect, apply_expression, render
from dbrm.features.sets import (
    TRANSFORM_SETS,
    get_transform,
    resolve_transforms,
    transform_names,
)
from dbrm.features.transforms import Transform
from dbrm.features.traversal import fold, walk
from dbrm.features.writing import write_features

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
    "Transform",
    "apply_expression",
    "column_status",
    "covariate",
    "drop_binary_powers",
    "evaluate",
    "fit_knots",
    "fold",
    "get_transform",
    "hinge",
    "hinge_down",
    "modify",
    "multiply",
    "parse_feature",
    "power",
    "project",
    "render",
    "resolve_transforms",
    "shortened",
    "step",
    "step_down",
    "transform_names",
    "walk",
    "write_features",
]
