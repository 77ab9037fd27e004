"""Tables, plots and progress: everything a person looks at."""

from dbrm.report.plots import Plots
from dbrm.report.progress import progress_bar
from dbrm.report.tables import feature_table, model_table, summarise

__all__ = ["Plots", "feature_table", "model_table", "progress_bar", "summarise"]
