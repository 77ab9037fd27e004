"""Deep Bayesian regression models."""
