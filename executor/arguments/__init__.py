"""The options, arrays and argument specs that users hand over, checked and described."""
