// RUN: profuse-opt %s -p 'specialize-autograd-zero{speculate=true},fold,dce' --verify-each | FileCheck %s
// RUN: profuse-opt %s -p specialize-autograd-zero --verify-each | FileCheck %s --check-prefix=PLAIN

// R1.43: what was observed of the arguments decides on one side of a branch that tests it; the other
// side is a fallback graph of everything. The counter stays at the end of the top block.
// CHECK-LABEL: func.func @both(
// CHECK-SAME:    %[[G:.*]]: !profuse.tensor, %[[H:.*]]: !profuse.tensor, %[[X:.*]]: !profuse.tensor)
// CHECK:         %[[N:.*]] = "profuse.all_nonzero"(%[[H]])
// CHECK-NEXT:    %[[Z:.*]] = "profuse.all_zero"(%[[G]])
// CHECK-NEXT:    %[[C:.*]] = "profuse.bitwise_and"(%[[N]], %[[Z]])
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[C]] -> (!profuse.tensor) {
// CHECK-NOT:       any_nonzero
// CHECK-NOT:       autograd_add
// CHECK:           "profuse.mul"
// CHECK:         } else {
// CHECK-NEXT:      %[[F:.*]] = "profuse.fallback_graph"(%[[G]], %[[H]], %[[X]]) {callee = @[[FALLBACK:.*]]}
// CHECK-NEXT:      scf.yield %[[F]]
// CHECK:         "profuse.profile_counter"
// CHECK:         return %[[R]]
// PLAIN-LABEL: func.func @both(
// PLAIN-NOT:     fallback_graph
// PLAIN:         return
func.func @both(%g: !profuse.tensor, %h: !profuse.tensor, %x: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%g) {site = 0 : i64, profiled_type = !profuse.undefined} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%h) {site = 1 : i64, profiled_type = tensor<4xf32, {defined = true}>} : (!profuse.tensor) -> !profuse.tensor
  %d = "profuse.any_nonzero"(%q) : (!profuse.tensor) -> i1
  %r = scf.if %d -> (!profuse.tensor) {
    %m = "profuse.mul"(%q, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %m : !profuse.tensor
  } else {
    %z = "profuse.autograd_zero"() : () -> !profuse.tensor
    scf.yield %z : !profuse.tensor
  }
  %s = "profuse.autograd_add"(%p, %r) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  "profuse.profile_counter"() : () -> ()
  return %s : !profuse.tensor
}

// Without any information nothing is built, and neither where nothing asks for it.
// CHECK-LABEL: func.func @unknown(
// CHECK-NOT:     scf.if
// CHECK:         "profuse.autograd_add"
// CHECK:         return
func.func @unknown(%g: !profuse.tensor, %h: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%g) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.autograd_add"(%p, %h) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %s : !profuse.tensor
}

// Nor where it was defined in one place and undefined in another.
// CHECK-LABEL: func.func @mixed(
// CHECK-NOT:     scf.if
// CHECK:         "profuse.autograd_add"
// CHECK:         return
func.func @mixed(%g: !profuse.tensor, %h: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%g) {site = 0 : i64, profiled_type = !profuse.undefined} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%g) {site = 1 : i64, profiled_type = tensor<4xf32, {defined = true}>} : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.autograd_add"(%p, %h) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %t = "profuse.autograd_add"(%q, %s) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %t : !profuse.tensor
}

// CHECK-LABEL: func.func @unasked(
// CHECK-NOT:     scf.if
// CHECK:         return
func.func @unasked(%g: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%g) {site = 0 : i64, profiled_type = tensor<4xf32, {defined = true}>} : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  return %s : !profuse.tensor
}

// The fallback observes nothing and decides when it runs.
// CHECK:       func.func private @[[FALLBACK]](
// CHECK-NOT:     profile
// CHECK:         "profuse.any_nonzero"
// CHECK:         "profuse.autograd_add"
