"""Ops that read or replace some elements: slices, gathers, scatters, in-place writes."""
