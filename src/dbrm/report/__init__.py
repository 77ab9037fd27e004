"""Tables, plots, reports and progress: everything a person looks at."""

from dbrm.report.formats import FORMATS, write_report
from dbrm.report.html import posterior_html
from dbrm.report.plots import Plots
from dbrm.report.progress import counting_bar, progress_bar
from dbrm.report.summary import feature_table, model_table, summarise
from dbrm.report.wording import format_probability

__all__ = [
    "FORMATS",
    "Plots",
    "counting_bar",
    "feature_table",
    "format_probability",
    "model_table",
    "posterior_html",
    "progress_bar",
    "summarise",
    "write_report",
]
