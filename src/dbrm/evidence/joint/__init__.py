"""Likelihoods that are no sum over rows of functions of one linear predictor."""
