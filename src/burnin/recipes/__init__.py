"""Recipes: TOML, one for each experiment, with what it costs and what it is expected to show."""
