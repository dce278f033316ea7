// log(cosh(x)), element by element, without overflow: a handler of XLA's typed foreign function interface.

#include <cmath>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error LogCoshImpl(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    const float size = std::fabs(x.typed_data()[i]);
    y->typed_data()[i] = size + std::log1p(std::exp(-2 * size)) - 0.69314718f;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(LogCosh, LogCoshImpl,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
