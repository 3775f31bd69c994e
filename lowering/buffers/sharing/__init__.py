"""Loops of bufferised functions whose rounds are independent: found, weighed, shared by threads."""
