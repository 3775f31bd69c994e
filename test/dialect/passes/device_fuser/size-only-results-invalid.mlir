// RUN: profuse-opt %s -p size-only-results --stats --verify-each 2>&1 | FileCheck %s
// RUN: not profuse-opt %s --pass-pipeline='size-only-results{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: profuse-opt: error: pass size-only-results has no option 'all'

// A10: a result whose sizes are not expressed stays, with the reason, and so does what follows from it.
// CHECK: a group returns more than is asked for: tile: the sizes of its results do not follow from those of its operands alone
// CHECK-LABEL: func.func @tiled(
// CHECK:         %[[G:.*]]:2 = "profuse.cuda_group"
// CHECK:         "profuse.sizes"(%[[G]]#0)
// CHECK:         "profuse.sizes"(%[[G]]#1)
func.func @tiled(%x: !profuse.tensor) -> (!profuse.ints, !profuse.ints) {
  %g:2 = "profuse.cuda_group"(%x) {callee = @d_tiled} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
  %s = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %t = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  return %s, %t : !profuse.ints, !profuse.ints
}
func.func private @d_tiled(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = "profuse.tile"(%x) {reps = array<i64: 2>} : (tensor<4xf32>) -> tensor<8xf32>
  %1 = "profuse.exp"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// What more than sizes is asked of stays, and so do results of a function that is called twice.
// CHECK-LABEL: func.func @read(
// CHECK:         "profuse.cuda_group"(%{{.*}}) {callee = @twice} : (!profuse.tensor) -> !profuse.tensor
// CHECK:         "profuse.cuda_group"(%{{.*}}) {callee = @twice} : (!profuse.tensor) -> !profuse.tensor
func.func @read(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.ints) {
  %g = "profuse.cuda_group"(%x) {callee = @twice} : (!profuse.tensor) -> !profuse.tensor
  %h = "profuse.cuda_group"(%x) {callee = @twice} : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.sizes"(%g) : (!profuse.tensor) -> !profuse.ints
  return %h, %s : !profuse.tensor, !profuse.ints
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
