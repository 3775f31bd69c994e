"""What users hand over, checked and described: options, arrays, argument specs."""
