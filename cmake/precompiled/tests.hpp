/// Precompiled for the tests that do not link the program: the headers of the actors and
/// GoogleTest.
#pragma once

#include "cmake/precompiled/actors.hpp"

#include <gtest/gtest.h>
