/// The readers of files, one a format. Internal to models/data; users call load().
#pragma once

#include "starling/base/result.hpp"
#include "starling/models/data/source/raw.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// IDX (LeCun, http://yann.lecun.com/exdb/mnist): 8-bit images are scaled to [0, 1], float and
/// double ones are taken as they are.
Result<RawTable> read_idx(const IdxSource& source);

/// CIFAR-10's binary version (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html):
/// records of a label and 32 x 32 pixels, scaled to [0, 1]. Rows are 32 x 32 x 3, the channels
/// last.
Result<RawTable> read_cifar10(const Cifar10Source& source);

/// A first row without any number is the header. Blank lines are skipped, cells may be quoted.
Result<RawTable> read_csv(const CsvSource& source);

/// LIBSVM's sparse text; `#` starts a comment. Indices ascend from 1, or from 0 where one is 0.
Result<RawTable> read_libsvm(const LibsvmSource& source);

/// NumPy's format (numpy.lib.format, versions 1 to 3) of numbers in either byte order and either
/// order of axes. Unsigned bytes are scaled to [0, 1]; images are [rows, height, width, channels].
Result<RawTable> read_npy(const NpySource& source);

/// The same in a zip archive, stored or deflated. The arrays of tests have other usual names.
Result<RawTable> read_npz(const NpzSource& source, bool is_test);

/// PNG and JPEG images. Any first rows hold the classes in about the proportion of all.
Result<RawTable> read_images(const ImagesSource& source);

}  // namespace starling::models
