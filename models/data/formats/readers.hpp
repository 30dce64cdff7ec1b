/// One function for each file format, which reads files of that format. Internal to models/data;
/// users call load().
#pragma once

#include "starling/base/result.hpp"
#include "starling/models/data/source/raw_table.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Reads IDX (LeCun, http://yann.lecun.com/exdb/mnist). Divides 8-bit pixels by 255; does not scale
/// pixels that are float or double.
Result<RawTable> read_idx(const IdxSource& source);

/// Reads CIFAR-10's binary version (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html):
/// records of a label and 32 x 32 pixels, scaled to [0, 1]. Rows are 32 x 32 x 3, the channels
/// last.
Result<RawTable> read_cifar10(const Cifar10Source& source);

/// Reads rows of cells. Unless the source or the training data decide it, the first row is a header
/// if all its cells are text. Skips blank lines. Cells may be quoted.
Result<RawTable> read_csv(const CsvSource& source);

/// Reads LIBSVM's sparse text; `#` starts a comment. The indices of a row must ascend. Unless the
/// source sets `base`, they count from 0 if the file contains an index 0, else from 1.
Result<RawTable> read_libsvm(const LibsvmSource& source);

/// Reads NumPy's format (numpy.lib.format, versions 1 to 3): numbers in either byte order, row- or
/// column-major. Divides unsigned bytes by 255. Images are [rows, height, width, channels].
Result<RawTable> read_npy(const NpySource& source);

/// Reads NumPy arrays in a zip archive, stored or deflated. If the user did not name the arrays,
/// looks for usual names: for test data x_test and so on, else x_train and so on, then x, X, data.
Result<RawTable> read_npz(const NpzSource& source, bool is_test);

/// Reads PNG and JPEG images. Interleaves the classes: for any n, the first n rows contain the
/// classes in about the same proportions as all rows.
Result<RawTable> read_images(const ImagesSource& source);

}  // namespace starling::models
