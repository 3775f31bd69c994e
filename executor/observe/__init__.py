"""Watching a run: the event log, times of compiles, recorded calls, traces for Perfetto."""
