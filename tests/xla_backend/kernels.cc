// Kernels for test_ffi.py, compiled there.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// y = factor * x + shift[0] + ... , with one attribute of each kind.
static ffi::Error ScaleImpl(float factor, double offset, int64_t repeat, bool negate, std::string_view label,
                            ffi::Span<const int32_t> shifts, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (label != "a \"quoted\" label") return ffi::Error::InvalidArgument("label is not what was given");
  for (size_t i = 0; i < x.element_count(); ++i) {
    float value = factor * x.typed_data()[i] + static_cast<float>(offset) * static_cast<float>(repeat);
    for (int32_t shift : shifts) value += static_cast<float>(shift);
    y->typed_data()[i] = negate ? -value : value;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Scale, ScaleImpl,
                              ffi::Ffi::Bind()
                                  .Attr<float>("factor")
                                  .Attr<double>("offset")
                                  .Attr<int64_t>("repeat")
                                  .Attr<bool>("negate")
                                  .Attr<std::string_view>("label")
                                  .Attr<ffi::Span<const int32_t>>("shifts")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// Cumulative sum and its maximum along the last axis of x; leading axes are a batch.
static ffi::Error RunningImpl(ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> start, ffi::ResultBuffer<ffi::F32> sums,
                              ffi::ResultBuffer<ffi::F32> largest) {
  auto dims = x.dimensions();
  const int64_t n = dims.back();
  const int64_t rows = n == 0 ? 0 : static_cast<int64_t>(x.element_count()) / n;
  const bool each = start.element_count() > 1;
  for (int64_t row = 0; row < rows; ++row) {
    float sum = start.typed_data()[each ? row : 0];
    float top = sum;
    for (int64_t i = 0; i < n; ++i) {
      sum += x.typed_data()[row * n + i];
      top = std::max(top, sum);
      sums->typed_data()[row * n + i] = sum;
    }
    largest->typed_data()[row] = top;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Running, RunningImpl,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static int64_t calls = 0;
extern "C" int64_t NumberOfCalls() { return calls; }

static ffi::Error CountImpl(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ++calls;
  std::copy_n(x.typed_data(), x.element_count(), y->typed_data());
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, CountImpl,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
