// RUN: profuse-opt -p fold,dce %s | FileCheck %s
// RUN: profuse-opt -p "fold{max-elements=3},dce" %s | FileCheck %s --check-prefix=SMALL

// CHECK-LABEL: func.func @numbers
func.func @numbers(%x: tensor<4xf32>) -> tensor<4xf64> {
  %a = "profuse.constant"() {value = 7 : i64} : () -> i64
  %b = "profuse.constant"() {value = 2 : i64} : () -> i64
  // CHECK-NEXT: %[[C:.*]] = "profuse.constant"() {value = 3.500000e+00 : f64} : () -> f64
  %0 = "profuse.div"(%a, %b) : (i64, i64) -> f64
  // CHECK-NEXT: "profuse.mul"(%arg0, %[[C]])
  %1 = "profuse.mul"(%x, %0) : (tensor<4xf32>, f64) -> tensor<4xf32>
  // CHECK-NEXT: %[[T:.*]] = "profuse.constant"() {value = true} : () -> i1
  %2 = "profuse.lt"(%b, %a) : (i64, i64) -> i1
  %3 = "profuse.select"(%2, %1, %1) : (i1, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = "profuse.cast"(%3) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  return %4 : tensor<4xf64>
}

// CHECK-LABEL: func.func @arrays
// SMALL-LABEL: func.func @arrays
func.func @arrays(%x: tensor<4xf32>) -> !profuse.tensor {
  %c = "profuse.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  // CHECK-NEXT: %[[C:.*]] = "profuse.constant"() {value = dense<[-1.000000e+00, -2.000000e+00, -3.000000e+00, -4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
  // SMALL: "profuse.neg"
  %0 = "profuse.neg"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: "profuse.add"(%arg0, %[[C]])
  %1 = "profuse.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[S:.*]] = "profuse.constant"() {value = dense<1.000000e+01> : tensor<f32>} : () -> !profuse.tensor
  // SMALL: value = dense<1.000000e+01>
  %2 = "profuse.sum"(%c) : (tensor<4xf32>) -> !profuse.tensor
  // CHECK-NEXT: "profuse.mul"(%{{.*}}, %[[S]])
  %3 = "profuse.mul"(%1, %2) : (tensor<4xf32>, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// CHECK-LABEL: func.func @sizes
func.func @sizes(%x: tensor<4x?xf32>, %y: !profuse.tensor) -> (i64, i64, i64, i64) {
  // CHECK-NEXT: %[[A:.*]] = "profuse.constant"() {value = 4 : i64}
  %0 = "profuse.dim"(%x) {axis = 0} : (tensor<4x?xf32>) -> i64
  // CHECK-NEXT: %[[B:.*]] = "profuse.dim"
  %1 = "profuse.dim"(%x) {axis = 1} : (tensor<4x?xf32>) -> i64
  // CHECK-NEXT: %[[C:.*]] = "profuse.constant"() {value = 2 : i64}
  %2 = "profuse.rank"(%x) : (tensor<4x?xf32>) -> i64
  // CHECK-NEXT: %[[D:.*]] = "profuse.rank"
  %3 = "profuse.rank"(%y) : (!profuse.tensor) -> i64
  // CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]]
  return %0, %1, %2, %3 : i64, i64, i64, i64
}

// What raises, grows, or would give a caller our own constant stays.
// CHECK-LABEL: func.func @left_alone
func.func @left_alone(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, i64) {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %big = "profuse.constant"() {value = 9223372036854775807 : i64} : () -> i64
  %c = "profuse.constant"() {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  // CHECK: "profuse.floor_div"
  %0 = "profuse.floor_div"(%one, %zero) : (i64, i64) -> i64
  // CHECK: "profuse.take"
  %1 = "profuse.take"(%c, %big) : (tensor<2xf32>, i64) -> tensor<f32>
  // CHECK: "profuse.add"
  %2 = "profuse.add"(%big, %one) : (i64, i64) -> i64
  // CHECK: "profuse.pow"
  %3 = "profuse.pow"(%big, %big) : (i64, i64) -> i64
  // CHECK: "profuse.full"
  %4 = "profuse.full"(%one) {shape = array<i64: 8>} : (i64) -> tensor<8xi64>
  // CHECK: "profuse.exp"
  %5 = "profuse.exp"(%c) : (tensor<2xf32>) -> !profuse.tensor
  // CHECK: "profuse.type_check"
  %6, %7 = "profuse.type_check"(%c) {types = [tensor<2xf32>]} : (tensor<2xf32>) -> (tensor<2xf32>, i1)
  %8 = "profuse.add"(%1, %6) : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %9 = "profuse.sum"(%4) : (tensor<8xi64>) -> tensor<i64>
  %10 = "profuse.add"(%8, %9) : (tensor<2xf32>, tensor<i64>) -> tensor<2xf64>
  %11 = "profuse.add"(%10, %0) : (tensor<2xf64>, i64) -> tensor<2xf64>
  %12 = "profuse.add"(%11, %2) : (tensor<2xf64>, i64) -> tensor<2xf64>
  %13 = "profuse.select"(%7, %12, %12) : (i1, tensor<2xf64>, tensor<2xf64>) -> !profuse.tensor
  return %5, %13, %3 : !profuse.tensor, !profuse.tensor, i64
}

// CHECK-LABEL: func.func @branch
func.func @branch(%x: !profuse.tensor) -> !profuse.tensor {
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %c = "profuse.lt"(%one, %one) : (i64, i64) -> i1
  // CHECK-NOT: scf.if
  %0 = scf.if %c -> !profuse.tensor {
    %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %1 : !profuse.tensor
  } else {
    // CHECK: %[[T:.*]] = "profuse.tanh"(%arg0)
    %2 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  // CHECK-NEXT: return %[[T]]
  return %0 : !profuse.tensor
}
