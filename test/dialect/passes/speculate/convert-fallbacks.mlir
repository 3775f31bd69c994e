// RUN: profuse-opt %s -p convert-fallbacks --verify-each | FileCheck %s
// RUN: profuse-opt %s -p convert-fallbacks --print-locations | FileCheck %s --check-prefix=LOC

// R1.41: fallback graphs of all blocks become calls; the marker fallback = 1 is the default.
// CHECK-LABEL: func.func @nested(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor,
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK-NEXT:        %[[F:.*]] = "profuse.call_fallback"(%[[X]]) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:        scf.yield %[[F]]
// LOC-DAG:       "profuse.call_fallback"{{.*}} loc(#[[L:.*]])
// LOC-DAG:       #[[L]] = loc("model.py":7:1)
func.func @nested(%x: !profuse.tensor, %n: i64, %c: i1) -> !profuse.tensor {
  %r = scf.if %c -> !profuse.tensor {
    %s = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (!profuse.tensor) : i64 {
      %0 = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor loc("model.py":7:1)
      scf.yield %0 : !profuse.tensor
    }
    scf.yield %s : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// The body of a fallback graph is left alone.
// CHECK-LABEL: func.func private @fallback_0(
// CHECK-NEXT:    "profuse.fallback_graph"(%{{.*}}) {callee = @fallback_1}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.fallback_graph"(%x) {callee = @fallback_1} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @fallback_1(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
