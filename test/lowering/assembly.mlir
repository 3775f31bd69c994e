// RUN: %{python} %S/lower.py asm %s znver4 | FileCheck %s

// The loop over elements is 512-bit code, four vectors at a time; exp is inline.
// CHECK-LABEL: // exponential
// CHECK-NOT:   call
// CHECK:       vfmadd{{.*}}%zmm
// CHECK:       vmovups{{.*}}%zmm{{[0-9]+}}, (
// CHECK:       vmovups{{.*}}%zmm{{[0-9]+}}, 64(
// CHECK:       vmovups{{.*}}%zmm{{[0-9]+}}, 128(
// CHECK:       vmovups{{.*}}%zmm{{[0-9]+}}, 192(
// CHECK-NOT:   call
func.func @exponential(%x: tensor<4096xf32, {strides = "contiguous"}>) -> tensor<4096xf32> {
  %e = "profuse.exp"(%x) : (tensor<4096xf32, {strides = "contiguous"}>) -> tensor<4096xf32>
  return %e : tensor<4096xf32>
}
