// The fully connected layer, computed by cuBLAS.
#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// Computes y = x W + b. Our matrices are row-major. cuBLAS expects column-major matrices, so it
/// reads each of our matrices as its transpose; the layer therefore computes y^T = W^T x^T.
class DenseLayer final : public DeviceLayer {
 public:
  explicit DenseLayer(const DenseSpecification& specification) : specification_(specification) {}

  MemoryNeeds prepare(const Context&, std::size_t n, std::size_t) override {
    return {.saved_bytes = 0, .scratch_bytes = column_scratch_bytes(output_rows(n))};
  }

  void forward(const ForwardCall& f) override {
    const int n = static_cast<int>(f.n);
    multiply(f.context, {CUBLAS_OP_N, CUBLAS_OP_N}, outputs(), n, inputs(), {f.w, outputs()},
             {f.x, inputs()}, 0, {f.y, outputs()});
    if (specification_.bias)
      for_each(f.context, f.n * specification_.outputs,
               AddBias{f.w + count_weights(), f.y, static_cast<Index>(specification_.outputs)},
               "dense");
  }

  void backward(const BackwardCall& b) override {
    const int n = static_cast<int>(b.n);
    // dW^T = dy^T x, added to g.
    multiply(b.context, {CUBLAS_OP_N, CUBLAS_OP_T}, outputs(), inputs(), n, {b.dy, outputs()},
             {b.x, inputs()}, 1, {b.g, outputs()});
    if (specification_.bias)
      sum_columns(b.context, output_rows(b.n), b.dy, true, b.g + count_weights());
    if (b.dx == nullptr) return;
    // dx^T = W dy^T.
    multiply(b.context, {CUBLAS_OP_T, CUBLAS_OP_N}, inputs(), n, outputs(), {b.w, outputs()},
             {b.dy, outputs()}, 0, {b.dx, inputs()});
  }

 private:
  /// Says of a and of b whether cuBLAS transposes the matrix before it multiplies.
  struct Transposed {
    cublasOperation_t a;
    cublasOperation_t b;
  };
  /// A column-major matrix. `stride` is the number of elements from one column to the next.
  template <class T>
  struct Matrix {
    T* data;
    int stride;
  };

  [[nodiscard]] int inputs() const { return static_cast<int>(specification_.inputs); }
  [[nodiscard]] int outputs() const { return static_cast<int>(specification_.outputs); }
  [[nodiscard]] std::size_t count_weights() const {
    return specification_.inputs * specification_.outputs;
  }
  /// Returns the n rows of the output as one group.
  [[nodiscard]] Groups output_rows(std::size_t n) const {
    return {static_cast<Index>(n), static_cast<Index>(specification_.outputs),
            static_cast<Index>(n)};
  }

  /// Computes c = a b + beta c for column-major matrices: a is [rows x inner], b [inner x columns]
  /// and c [rows x columns], a and b after the transposition that `transposed` asks for.
  static void multiply(const Context& context, const Transposed& transposed, int rows, int columns,
                       int inner, const Matrix<const float>& a, const Matrix<const float>& b,
                       float beta, const Matrix<float>& c) {
    const float one = 1;
    check(cublasSgemm(context.blas(), transposed.a, transposed.b, rows, columns, inner, &one,
                      a.data, a.stride, b.data, b.stride, &beta, c.data, c.stride),
          "dense");
  }

  DenseSpecification specification_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_dense(const DenseSpecification& specification) {
  return std::make_unique<DenseLayer>(specification);
}

}  // namespace starling::models::cuda
