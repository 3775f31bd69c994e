// RUN: profuse-opt %s -p convert-fallbacks --verify-diagnostics --split-input-file

func.func @no_callee(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{@fallback_0}}
  %0 = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}
func.func @arity(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{@fallback_0}}
  %0 = "profuse.fallback_graph"(%x, %x) {callee = @fallback_0} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
