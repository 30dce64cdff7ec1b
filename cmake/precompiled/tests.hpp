/// Precompiled for the other tests: the headers of the actors and GoogleTest.
#pragma once

#include "cmake/precompiled/actors.hpp"

#include <gtest/gtest.h>
