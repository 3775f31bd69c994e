"""Passes of a user that cannot be imported (opt-errors.test)."""

raise RuntimeError("no weights")
