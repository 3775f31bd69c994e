"""What a guard checks of values: their types, sizes that are related, gradient mode."""
