/// What the tests include of other libraries.
#pragma once

#include "cmake/precompiled/actors.hpp"

#include <gtest/gtest.h>
