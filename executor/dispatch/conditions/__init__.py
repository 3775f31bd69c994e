"""Reads and tests of arguments in emitted code, before a leaf takes the call."""
