"""From loops to callable machine code on the host: LLVM dialect, LLVM IR, object code."""
