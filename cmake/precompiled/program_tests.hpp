/// What the tests of the program include of other libraries.
#pragma once

#include "cmake/precompiled/program.hpp"

#include <gtest/gtest.h>
