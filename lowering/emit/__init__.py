"""Schedule -> loops over bare pointers, in MLIR. Entry: `module.emit_module`."""
