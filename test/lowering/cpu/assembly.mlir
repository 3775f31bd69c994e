// RUN: %{python} %S/../lower.py asm %s znver4 | FileCheck %s

// The loop over elements is 512-bit code, four vectors at a time; exp is inline.
// CHECK-LABEL: // exponential
// CHECK:       {{^}}exponential_nest0:
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

// So are the loop over the elements of a block, which has no indices, and the search for the place
// in a block, which has indices of 32 bits.
// CHECK-LABEL: // place
// CHECK:       vmaxps {{-?[0-9]*}}(%{{.*}}%zmm
// CHECK:       vmaxps {{-?[0-9]*}}(%{{.*}}%zmm
// CHECK:       vmaxps {{-?[0-9]*}}(%{{.*}}%zmm
// CHECK:       vmaxps {{-?[0-9]*}}(%{{.*}}%zmm
// CHECK:       jne
// CHECK:       vmovups {{-?[0-9]*}}(%{{.*}}%zmm
// CHECK-NOT:   vpmovqd
// CHECK:       vcmpeqps {{.*}}%zmm
// CHECK:       vcmpunordps {{.*}}%zmm
// CHECK-NOT:   vpmovqd
// CHECK-COUNT-4: vpminsd {{.*}}%zmm
// CHECK:       jne
func.func private @place(%x: tensor<64x4096xf32, {strides = "contiguous"}>) -> tensor<64xi64> {
  %i = "profuse.argmax"(%x) {axis = 1 : i64} : (tensor<64x4096xf32, {strides = "contiguous"}>) -> tensor<64xi64>
  return %i : tensor<64xi64>
}

// The usual version of the loop around sin comes first. It has no operation in f64, and notes in a
// mask whether it suffices: if so, the jump leads past the other version. Neither has a call.
// CHECK-LABEL: // wave
// CHECK:       {{^}}wave_nest0:
// CHECK-NOT:   {{call|vcvt|[a-z]pd}}
// CHECK:       vfmadd{{.*}}ps {{.*}}%zmm
// CHECK-NOT:   {{call|vcvt|[a-z]pd}}
// CHECK:       vmovups %zmm{{[0-9]+}}, 192({{.*}},
// CHECK-NOT:   {{call|vcvt|[a-z]pd}}
// CHECK:       jne
// CHECK:       kortest
// CHECK-NEXT:  je [[DONE:\.[A-Z0-9_]+]]
// CHECK-NOT:   call
// CHECK:       vcvtps2pd
// CHECK-NOT:   call
// CHECK:       jne
// CHECK-NOT:   call
// CHECK:       [[DONE]]:
func.func private @wave(%x: tensor<4096xf32, {strides = "contiguous"}>) -> tensor<4096xf32> {
  %s = "profuse.sin"(%x) : (tensor<4096xf32, {strides = "contiguous"}>) -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// Four rows are added to an accumulator between its load and its store.
// CHECK-LABEL: // columns
// CHECK:       {{^}}columns_nest0:
// CHECK:       vmovups %zmm{{[0-9]+}}, 192(%{{.*}},4)
// CHECK:       jne
// CHECK-NOT:   vmovups %zmm{{.*}}, {{.*}}(%
// CHECK-COUNT-16: vaddps {{.*}}%zmm
// CHECK-COUNT-4: vmovups %zmm{{[0-9]+}}, {{[0-9]*}}(%{{.*}},4)
// CHECK-NOT:   vaddps
// CHECK:       jne
func.func private @columns(%x: tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<256xf32> {
  %s = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<256xf32>
  return %s : tensor<256xf32>
}
