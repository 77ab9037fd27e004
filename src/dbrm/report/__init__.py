"""Tables, plots and progress: everything a person looks at."""

from dbrm.report.notebook import posterior_html
from dbrm.report.page import write_page
from dbrm.report.plots import Plots
from dbrm.report.progress import counting_bar, progress_bar
from dbrm.report.tables import feature_table, model_table, summarise
from dbrm.report.wording import format_probability

__all__ = [
    "Plots",
    "counting_bar",
    "feature_table",
    "format_probability",
    "model_table",
    "posterior_html",
    "progress_bar",
    "summarise",
    "write_page",
]
