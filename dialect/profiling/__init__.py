"""Observers in graphs: what they record, and what records say of input types."""
