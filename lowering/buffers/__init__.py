"""Functions with loops on tensors: bufferised by MLIR's one-shot pass. Entry: `bufferize`."""
