"""What programs do around tensors: branches, loops, lists of tensors, effects."""
