"""New features for populations, found by what residuals lack."""
