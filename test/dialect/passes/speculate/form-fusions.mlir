// RUN: profuse-opt %s -p form-fusions --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s -p 'form-fusions{min-size=1}' | FileCheck %s --check-prefix=ONE
// RUN: profuse-opt %s -p 'form-fusions{max-values=3}' | FileCheck %s --check-prefix=SMALL
// RUN: profuse-opt %s -p 'form-fusions{dynamic=true}' | FileCheck %s --check-prefix=DYN
// RUN: profuse-opt %s -p form-fusions --print-locations | FileCheck %s --check-prefix=LOC

// R1.48: every refused op is counted, with the reason.
// STATS-DAG: 1 refused: exp: too few neighbours to fuse with
// STATS-DAG: 1 refused: reshape: result sizes depend on run-time values
// STATS-DAG: 1 refused: tanh: type of operand 0 is not known
// STATS-DAG: 1 refused: mul: operands are on different devices: cpu, cuda:0
// STATS-DAG: 1 refused: add: a Python integer may not fit i8
// STATS-DAG: 2 refused: tanh: size of operand 0 varies

// CHECK-LABEL: func.func @pair(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32, {strides = ["8", "1"]}>, %[[Y:.*]]: tensor<8xf32>, %[[N:.*]]: f64)
// CHECK-NEXT:    %[[F:.*]] = "profuse.fusion_group"(%[[X]], %[[Y]], %[[N]]) {callee = @[[PAIR:fusion_[0-9]+]]}
// CHECK-SAME:      -> tensor<4x8xf32>
// CHECK-NEXT:    return %[[F]]
// LOC-DAG:       #[[LOC:.*]] = loc("model.py":3:5)
// LOC-DAG:       "profuse.fusion_group"(%{{.*}}, %{{.*}}, %{{.*}}) {callee = @fusion_0}{{.*}} loc(#[[LOC]])
// LOC-DAG:       "profuse.mul"(%{{.*}}, %{{.*}}){{.*}}f64) -> tensor<4x8xf32> loc(#[[LOC]])
func.func @pair(%x: tensor<4x8xf32, {strides = ["8", "1"]}>, %y: tensor<8xf32>, %n: f64) -> tensor<4x8xf32> {
  %0 = "profuse.add"(%x, %y) : (tensor<4x8xf32, {strides = ["8", "1"]}>, tensor<8xf32>) -> tensor<4x8xf32> loc("model.py":2:5)
  %1 = "profuse.mul"(%0, %n) : (tensor<4x8xf32>, f64) -> tensor<4x8xf32> loc("model.py":3:5)
  return %1 : tensor<4x8xf32>
}

// One op alone is no group, unless min-size says so.
// CHECK-LABEL: func.func @single
// CHECK-NEXT:    "profuse.exp"
// ONE-LABEL:   func.func @single
// ONE-NEXT:      "profuse.fusion_group"
func.func @single(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A view counts for nothing, but joins its neighbours, as last op too.
// CHECK-LABEL: func.func @views(
// CHECK-NEXT:    %[[A:.*]]:2 = "profuse.fusion_group"(%{{.*}})
// CHECK-NEXT:    return %[[A]]#0, %[[A]]#1
// CHECK-LABEL: func.func @only_views(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @views(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = "profuse.transpose"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "profuse.tanh"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "profuse.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "profuse.transpose"(%2) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func @only_views(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "profuse.transpose"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "profuse.transpose"(%0) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// A step that computes several results side by side is one group.
// CHECK-LABEL: func.func @adam(
// CHECK-NEXT:    %[[R:.*]]:3 = "profuse.fusion_group"
// CHECK-NEXT:    return
// R1.48: operands and results of a group stay within max-values.
// SMALL-LABEL: func.func @adam(
// SMALL-NOT:     :3 = "profuse.fusion_group"
// SMALL:         return
func.func @adam(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %b: f64) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = "profuse.mul"(%m, %b) : (tensor<8xf32>, f64) -> tensor<8xf32>
  %m2 = "profuse.add"(%0, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = "profuse.mul"(%v, %b) : (tensor<8xf32>, f64) -> tensor<8xf32>
  %2 = "profuse.mul"(%g, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %v2 = "profuse.add"(%1, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = "profuse.sqrt"(%v2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "profuse.div"(%m2, %3) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p2 = "profuse.sub"(%p, %4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %p2, %m2, %v2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// No cycle through an op that stays outside.
// CHECK-LABEL: func.func @cycle(
// CHECK-NEXT:    %[[A:.*]]:2 = "profuse.fusion_group"(%{{.*}})
// CHECK-NEXT:    %[[B:.*]] = "profuse.profile"(%[[A]]#1)
// CHECK-NEXT:    %[[C:.*]] = "profuse.fusion_group"(%[[A]]#0, %[[B]])
// CHECK-NEXT:    return %[[C]]
func.func @cycle(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "profuse.exp"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "profuse.profile"(%1) {site = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = "profuse.add"(%0, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = "profuse.sqrt"(%3) : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// Members move together past an op that neither of them needs.
// CHECK-LABEL: func.func @around(
// CHECK-DAG:     %[[F:.*]]:2 = "profuse.fusion_group"
// CHECK-DAG:     "profuse.profile"(%[[F]]#0)
// CHECK:         return
func.func @around(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = "profuse.tanh"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "profuse.profile"(%0) {site = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "profuse.exp"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// Constants are copied into the group.
// CHECK-LABEL: func.func @constants(
// CHECK:         "profuse.fusion_group"(%arg0) {callee = @[[CONST:fusion_[0-9]+]]}
func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "profuse.constant"() {value = 2.0 : f64} : () -> f64
  %d = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "profuse.mul"(%x, %c) : (tensor<2xf32>, f64) -> tensor<2xf32>
  %1 = "profuse.add"(%0, %d) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// A large one is an operand: it is no part of the code.
// CHECK-LABEL: func.func @large_constant(
// CHECK:         "profuse.fusion_group"(%{{.*}}, %{{.*}}) {{.*}} : (tensor<65xf32>, tensor<65xf32>)
func.func @large_constant(%x: tensor<65xf32>) -> tensor<65xf32> {
  %d = "profuse.constant"() {value = dense<1.0> : tensor<65xf32>} : () -> tensor<65xf32>
  %0 = "profuse.mul"(%x, %d) : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
  %1 = "profuse.add"(%0, %d) : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
  return %1 : tensor<65xf32>
}

// A query goes with its user; one whose result is used outside stays there.
// CHECK-LABEL: func.func @query(
// CHECK-NEXT:    %[[F:.*]]:2 = "profuse.fusion_group"(%{{.*}}) {callee = @[[QUERY:fusion_[0-9]+]]}
// CHECK-NEXT:    %[[N:.*]] = "profuse.size"(%[[F]]#0)
// CHECK-NEXT:    return %[[F]]#1, %[[N]]
func.func @query(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, i64) {
  %t = "profuse.tanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = "profuse.size"(%t) : (tensor<4x8xf32>) -> i64
  %u = "profuse.div"(%t, %n) : (tensor<4x8xf32>, i64) -> tensor<4x8xf32>
  %d = "profuse.dim"(%u) {axis = 1 : i64} : (tensor<4x8xf32>) -> i64
  %e = "profuse.exp"(%u) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = "profuse.reshape"(%e, %d) {shape = array<i64: -9223372036854775808, -1>} : (tensor<4x8xf32>, i64) -> tensor<8x4xf32>
  return %r, %n : tensor<8x4xf32>, i64
}

// Sizes that are known only when the graph runs are nothing a guard of types could check.
// CHECK-LABEL: func.func @run_time_size(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @run_time_size(%x: tensor<4x8xf32>, %n: i64) -> tensor<8x4xf32> {
  %t = "profuse.tanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = "profuse.reshape"(%t, %n) {shape = array<i64: -9223372036854775808, -1>} : (tensor<4x8xf32>, i64) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// Groups inside branches and loops, reading values from outside.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] =
// CHECK-NEXT:      %[[F:.*]] = "profuse.fusion_group"(%[[A]], %arg1)
// CHECK-NEXT:      scf.yield %[[F]]
func.func @nested(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: i64) -> tensor<4xf32> {
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (tensor<4xf32>) : i64 {
    %t = "profuse.tanh"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %u = "profuse.mul"(%t, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %u : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Types must be known, on one device.
// CHECK-LABEL: func.func @refused(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @refused(%x: !profuse.tensor, %y: tensor<4xf32>) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.add"(%0, %y) : (!profuse.tensor, tensor<4xf32>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func @devices(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @devices(%x: tensor<4xf32, {device = "cpu"}>, %y: tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32> {
  %0 = "profuse.mul"(%x, %y) : (tensor<4xf32, {device = "cpu"}>, tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// NumPy raises OverflowError for an integer that does not fit; a kernel would wrap.
// CHECK-LABEL: func.func @overflow(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @overflow(%x: tensor<4xi8>, %n: i64) -> tensor<4xi8> {
  %0 = "profuse.add"(%x, %n) : (tensor<4xi8>, i64) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// Symbolic sizes only where kernels may have them.
// CHECK-LABEL: func.func @symbolic(
// CHECK-NOT:     fusion_group
// CHECK:         return
// DYN-LABEL:   func.func @symbolic(
// DYN-NEXT:      "profuse.fusion_group"
func.func @symbolic(%x: tensor<?xf32, {dims = ["s0"]}>) -> tensor<?xf32, {dims = ["s0"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?xf32, {dims = ["s0"]}>) -> tensor<?xf32, {dims = ["s0"]}>
  %1 = "profuse.tanh"(%0) : (tensor<?xf32, {dims = ["s0"]}>) -> tensor<?xf32, {dims = ["s0"]}>
  return %1 : tensor<?xf32, {dims = ["s0"]}>
}

// An unknown layout is any, along each axis.
// CHECK:       func.func private @[[PAIR]](
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32, {strides = ["8", "1"]}>, %[[Y:.*]]: tensor<8xf32, {strides = ["?"]}>, %[[N:.*]]: f64) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[A:.*]] = "profuse.add"(%[[X]], %[[Y]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.mul"(%[[A]], %[[N]])
// CHECK-NEXT:    return %[[B]] : tensor<4x8xf32>

// CHECK:       func.func private @[[CONST]](
// CHECK:         "profuse.constant"() {value = 2.0{{.*}} : f64}
// CHECK-NEXT:    "profuse.mul"
// CHECK-NEXT:    "profuse.constant"() {value = dense
// CHECK-NEXT:    "profuse.add"

// CHECK:       func.func private @[[QUERY]](
// CHECK:         %[[SIZE:.*]] = "profuse.size"
// CHECK:         "profuse.div"(%{{.*}}, %[[SIZE]])
// CHECK:         %[[DIM:.*]] = "profuse.dim"
// CHECK:         "profuse.reshape"(%{{.*}}, %[[DIM]])
