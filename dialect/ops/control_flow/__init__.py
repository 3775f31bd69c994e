"""The ops around tensors: branches, loops, lists of tensors, effects."""
