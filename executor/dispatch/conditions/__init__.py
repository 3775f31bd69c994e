"""What emitted code reads of arguments, and tests, before a leaf takes the call."""
