"""Passes that finish captured backward runs, and take their lists apart."""
