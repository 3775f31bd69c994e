"""The functions that users hold: jitted, loaded, saved; how calls reach an executor."""
