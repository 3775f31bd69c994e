// RUN: profuse-opt -p dce %s | FileCheck %s

// A chain goes in one run; what is returned stays.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: !profuse.tensor) -> !profuse.tensor {
  // CHECK-NEXT: "profuse.exp"
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.tanh"(%0) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.add"(%1, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: return
  return %0 : !profuse.tensor
}

// CHECK-LABEL: func.func @impure
func.func @impure(%x: !profuse.tensor) {
  // CHECK-NEXT: "profuse.profile_counter"
  "profuse.profile_counter"() : () -> ()
  // CHECK-NEXT: return
  return
}

// CHECK-LABEL: func.func @one_of_two
func.func @one_of_two(%x: tensor<4xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: "profuse.split"
  %0, %1 = "profuse.split"(%x) {sections = 2} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @control
func.func @control(%c: i1, %n: i64, %x: !profuse.tensor) {
  // Everything inside is pure.
  // CHECK-NOT: scf.for
  %0 = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %1 = "profuse.exp"(%a) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %1 : !profuse.tensor
  }
  // CHECK: scf.if
  scf.if %c {
    // CHECK-NEXT: "profuse.profile_counter"
    "profuse.profile_counter"() : () -> ()
    %2 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    // CHECK-NEXT: }
  }
  return
}

// CHECK-LABEL: func.func @calls
func.func @calls(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.call_fallback"(%x) {callee = @used} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.call_fallback"(%x) {callee = @by_dead} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// CHECK: func.func private @used
func.func private @used(%x: !profuse.tensor) -> !profuse.tensor {
  // CHECK-NEXT: "profuse.call_fallback"{{.*}}@by_used
  %0 = "profuse.call_fallback"(%x) {callee = @by_used} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// CHECK: func.func private @by_used
func.func private @by_used(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// Named by a dead op only; two that name each other only.
// CHECK-NOT: func.func
func.func private @by_dead(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}
func.func private @one(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.call_fallback"(%x) {callee = @two} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @two(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.call_fallback"(%x) {callee = @one} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
