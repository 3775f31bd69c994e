"""Settings and messages: knobs, modes, strategies, events, locks for forks."""
