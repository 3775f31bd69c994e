"""Pipelines of passes: their syntax, the standard ones, running and replaying them."""
