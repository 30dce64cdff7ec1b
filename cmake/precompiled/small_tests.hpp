/// Precompiled for the tests that link no part above the models, and for those that only run
/// programs. It is small, because gcc instantiates the templates that the inline functions of a
/// precompiled header use again for each file that uses it: for the actors that takes seconds.
#pragma once

#include "cmake/precompiled/standard.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
