/// Precompiled for the actors: the standard library and CAF.
#pragma once

#include "cmake/precompiled/standard.hpp"
#include "starling/actor/caf.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>
