// RUN: profuse-opt %s -p extract-constants,specialize --verify-each | FileCheck %s
// RUN: profuse-opt %s -p extract-constants,specialize,functionalize,split-linear,split-conv,views-to-copies --verify-each | FileCheck %s --check-prefix=LATER
// RUN: profuse-opt %s -p functionalize,split-linear,split-conv,views-to-copies,join-views,copies-to-views --verify-each | FileCheck %s --check-prefix=NONE

// R3.13: observers of types are gone after step 2, which is where types come from. What follows from
// nothing that was observed stays bare, and no later step knows more of it.
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    , %[[Y:.*]]: !profuse.tensor)
// CHECK-NOT:     "profuse.profile"
// CHECK:         "profuse.exp"(%{{.*}}) : (tensor<4x6xf32, {device = "cuda:0"}>)
// CHECK:         "profuse.reshape"(%[[Y]]) {shape = array<i64: 24>} : (!profuse.tensor) -> !profuse.tensor
// CHECK:         "profuse.tanh"(%{{.*}}) : (!profuse.tensor) -> !profuse.tensor
// LATER-LABEL: func.func @f(
// LATER-SAME:    , %[[Y:.*]]: !profuse.tensor)
// LATER:         "profuse.reshape_copy"(%[[Y]]) {implicit = true, shape = array<i64: 24>} : (!profuse.tensor) -> !profuse.tensor
// NONE-LABEL:  func.func @f(
// NONE-NOT:      -> tensor
// NONE:          return
func.func @f(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4x6xf32, {device = "cuda:0"}>} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.reshape"(%y) {shape = array<i64: 24>} : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.tanh"(%1) : (!profuse.tensor) -> !profuse.tensor
  return %0, %2 : !profuse.tensor, !profuse.tensor
}
