/// Precompiled for the tests of the program: the headers of the program and GoogleTest.
#pragma once

#include "cmake/precompiled/program.hpp"

#include <gtest/gtest.h>
