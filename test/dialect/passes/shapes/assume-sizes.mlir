// RUN: profuse-opt %s -p 'assume-sizes{unit-axes=2.0 contiguous=0}' --verify-each --split-input-file | FileCheck %s

// R2.12: each unknown size is a symbol of its own; sizes that an op needs equal share one.
// CHECK-LABEL: func.func @equal(
// CHECK-SAME:    %{{.*}}: tensor<?x?xf32, {dims = ["s0", "s1"], strides = "contiguous"}>
// CHECK-SAME:    %{{.*}}: tensor<?xf32, {dims = ["s1"]}>
// CHECK-SAME:    %{{.*}}: tensor<1x?xf32, {dims = ["1", "s1"]}>
// CHECK-SAME:    -> tensor<?x?xf32, {dims = ["s0", "s1"]}>
func.func @equal(%x: tensor<?x?xf32>, %b: tensor<?xf32>, %u: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = "profuse.add"(%x, %b) : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  // Axis 0 of input 2 had size 1, where another size than 1 would have to fit.
  %z = "profuse.mul"(%y, %u) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}

// -----

// A size of 1 that nothing else has to fit stays a symbol.
// CHECK-LABEL: func.func @unit_alone(
// CHECK-SAME:    %{{.*}}: tensor<?xf32, {dims = ["s2"]}>)
func.func @unit_alone(%x: tensor<?xf32>, %y: tensor<?xf32>, %u: tensor<?xf32>) -> tensor<?xf32> {
  %z = "profuse.tanh"(%u) : (tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}

// -----

// A product sums over one size of both; its own sizes are those that remain.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    dims = ["s0", "s1"]
// CHECK-SAME:    dims = ["s1", "s3"]
// CHECK-SAME:    -> tensor<?x?xf32, {dims = ["s0", "s3"]}>
func.func @product(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = "profuse.matmul"(%x, %w) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// A literal size wins.
// CHECK-LABEL: func.func @literal(
// CHECK-SAME:    %{{.*}}: tensor<2xf32{{.*}}
func.func @literal(%x: tensor<?xf32>) -> tensor<?xf32> {
  %k = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %y = "profuse.add"(%x, %k) : (tensor<?xf32>, tensor<2xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Sizes that are known only at run time are symbols, too: groups after them may be formed.
// CHECK-LABEL: func.func @computed(
// CHECK:         "profuse.broadcast_to"{{.*}} -> tensor<?xf32, {dims = ["s1"]}>
// CHECK:         "profuse.tanh"{{.*}} -> tensor<?xf32, {dims = ["s1"]}>
func.func @computed(%x: tensor<?xf32>, %n: i64) -> tensor<?xf32> {
  %y = "profuse.broadcast_to"(%x, %n) {shape = array<i64: -9223372036854775808>} : (tensor<?xf32>, i64) -> tensor<?xf32>
  %z = "profuse.tanh"(%y) : (tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}

// -----

// A loop that keeps its sizes keeps their symbols; one that does not has a size nobody names.
// CHECK-LABEL: func.func @loops(
// CHECK:         scf.for {{.*}} -> (tensor<?xf32, {dims = ["s0"], strides = "contiguous"}>)
// CHECK:         scf.for {{.*}} -> (tensor<?xf32>)
func.func @loops(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: i64) -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<?xf32>) : i64 {
    %w = "profuse.tanh"(%v) : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  %q = scf.for %i = %zero to %n step %one iter_args(%v = %y) -> (tensor<?xf32>) : i64 {
    %w = "profuse.concatenate"(%v, %v) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  return %r, %q : tensor<?xf32>, tensor<?xf32>
}
