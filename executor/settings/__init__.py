"""What may be set and what is told: knobs, modes, strategies, events, locks for forks."""
