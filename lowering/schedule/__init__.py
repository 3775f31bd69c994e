"""Linalg function -> schedule: nests and library products over buffers. Entry: `plan.schedule`."""
