// R1.36, R1.37: outside what has been checked nothing is known; constants and checks keep theirs.
// RUN: profuse-opt %s --pass-pipeline=erase-types --verify-each | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.type_check"(%[[X]]) {{.*}} : (!profuse.tensor) -> (tensor<2xf32>, i1)
// CHECK-NEXT:    %[[K:.*]] = "profuse.constant"() {{.*}} -> tensor<2xf32>
// CHECK-NEXT:    %[[S:.*]] = "profuse.add"(%[[C]]#0, %[[K]]) : (tensor<2xf32>, tensor<2xf32>) -> !profuse.tensor
// CHECK-NEXT:    return %[[S]] : !profuse.tensor
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c:2 = "profuse.type_check"(%x) {types = [tensor<2xf32>]} : (tensor<2xf32>) -> (tensor<2xf32>, i1)
  %k = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %s = "profuse.add"(%c#0, %k) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}

// What `scf` or a signature ties to other values has their type.
// CHECK-LABEL: func.func @tied(
// CHECK:         "profuse.constant"() {{.*}} -> !profuse.tensor
// CHECK:         scf.if %{{.*}} -> (!profuse.tensor)
func.func @tied(%c: i1, %x: tensor<2xf32>) -> tensor<2xf32> {
  %k = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = scf.if %c -> (tensor<2xf32>) {
    scf.yield %k : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// CHECK-LABEL: func.func private @fusion_0(
// CHECK-SAME:    %{{.*}}: tensor<2xf32>) -> tensor<2xf32>
func.func private @fusion_0(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
