"""What holds of a program that does not run: which values share memory, and who writes it."""
