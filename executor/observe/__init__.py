"""Watching a run: the functions there are, recorded calls, traces for Perfetto."""
