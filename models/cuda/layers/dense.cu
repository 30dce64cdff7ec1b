// The fully connected layer, by cuBLAS.
#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// y = x W + b. cuBLAS counts columns first, so that a matrix of ours is its transpose there:
/// y^T = W^T x^T.
class DenseLayer final : public DeviceLayer {
 public:
  explicit DenseLayer(const DenseForm& form) : form_(form) {}

  Needs prepare(const Context&, std::size_t n, std::size_t) override {
    return {.kept_bytes = 0, .scratch_bytes = column_scratch_bytes(rows(n))};
  }

  void forward(const ForwardCall& f) override {
    const int n = static_cast<int>(f.n);
    product(f.context, {CUBLAS_OP_N, CUBLAS_OP_N}, outputs(), n, inputs(), {f.w, outputs()},
            {f.x, inputs()}, 0, {f.y, outputs()});
    if (form_.bias)
      for_each(f.context, f.n * form_.outputs,
               AddBias{f.w + weights(), f.y, static_cast<Index>(form_.outputs)}, "dense");
  }

  void backward(const BackwardCall& b) override {
    const int n = static_cast<int>(b.n);
    // dW^T = dy^T x, added to g.
    product(b.context, {CUBLAS_OP_N, CUBLAS_OP_T}, outputs(), inputs(), n, {b.dy, outputs()},
            {b.x, inputs()}, 1, {b.g, outputs()});
    if (form_.bias) sum_columns(b.context, rows(b.n), b.dy, true, b.g + weights());
    if (b.dx == nullptr) return;
    // dx^T = W dy^T.
    product(b.context, {CUBLAS_OP_T, CUBLAS_OP_N}, inputs(), n, outputs(), {b.w, outputs()},
            {b.dy, outputs()}, 0, {b.dx, inputs()});
  }

 private:
  struct Transposed {
    cublasOperation_t a;
    cublasOperation_t b;
  };
  template <class T>
  struct Matrix {
    T* data;
    int stride;
  };

  [[nodiscard]] int inputs() const { return static_cast<int>(form_.inputs); }
  [[nodiscard]] int outputs() const { return static_cast<int>(form_.outputs); }
  [[nodiscard]] std::size_t weights() const { return form_.inputs * form_.outputs; }
  [[nodiscard]] Groups rows(std::size_t n) const {
    return {static_cast<Index>(n), static_cast<Index>(form_.outputs), static_cast<Index>(n)};
  }

  /// c [rows x columns] = a b + beta c, with `inner` terms a sum, as cuBLAS counts.
  static void product(const Context& context, const Transposed& transposed, int rows, int columns,
                      int inner, const Matrix<const float>& a, const Matrix<const float>& b,
                      float beta, const Matrix<float>& c) {
    const float one = 1;
    check(cublasSgemm(context.blas(), transposed.a, transposed.b, rows, columns, inner, &one,
                      a.data, a.stride, b.data, b.stride, &beta, c.data, c.stride),
          "dense");
  }

  DenseForm form_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_dense(const DenseForm& form) {
  return std::make_unique<DenseLayer>(form);
}

}  // namespace starling::models::cuda
