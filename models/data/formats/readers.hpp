/// One function for each file format, which reads a file of that format. Internal to models/data;
/// users call load().
#pragma once

#include "starling/base/result.hpp"
#include "starling/models/data/source/raw_table.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Reads IDX (LeCun, http://yann.lecun.com/exdb/mnist). 8-bit images are scaled to [0, 1], those of
/// float and double are not.
Result<RawTable> read_idx(const IdxSource& source);

/// Reads CIFAR-10's binary version (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html):
/// records of a label and 32 x 32 pixels, scaled to [0, 1]. Rows are 32 x 32 x 3, the channels
/// last.
Result<RawTable> read_cifar10(const Cifar10Source& source);

/// Reads rows of cells. The first row is the header if it holds no number. Blank lines are skipped,
/// cells may be quoted.
Result<RawTable> read_csv(const CsvSource& source);

/// Reads LIBSVM's sparse text; `#` starts a comment. The indices of a row ascend. They count from
/// 1, or from 0 if the file holds an index 0.
Result<RawTable> read_libsvm(const LibsvmSource& source);

/// Reads NumPy's format (numpy.lib.format, versions 1 to 3) of numbers in either byte order, row-
/// or column-major. Unsigned bytes are scaled to [0, 1]; images are [rows, height, width,
/// channels].
Result<RawTable> read_npy(const NpySource& source);

/// Reads NumPy arrays in a zip archive, stored or deflated. `is_test` decides which usual names of
/// arrays are tried first: x_test or x_train, and so on.
Result<RawTable> read_npz(const NpzSource& source, bool is_test);

/// Reads PNG and JPEG images. The rows are mixed: the first n of them hold the classes in about the
/// proportion of all rows, for any n.
Result<RawTable> read_images(const ImagesSource& source);

}  // namespace starling::models
