"""Memory for results and intermediates: pools, placement, lifetimes, donated arguments."""
