// RUN: not profuse-opt %s -p 'assume-sizes{unit-axes=0.x}' 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: not profuse-opt %s -p 'assume-sizes{contiguous=all}' 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not profuse-opt %s -p 'assume-sizes{units=0.1}' 2>&1 | FileCheck %s --check-prefix=NAME

// PAIR: error: pass assume-sizes failed: '0.x' is no list of numbers
// LIST: error: pass assume-sizes failed: 'all' is no list of numbers
// NAME: pass assume-sizes has no option 'units'
func.func @f() {
  return
}
