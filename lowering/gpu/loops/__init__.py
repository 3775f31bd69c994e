"""Functions with loops whose rounds are independent: a thread for each round. Entry: `emit`."""
