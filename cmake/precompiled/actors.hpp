/// Precompiled for the actors: the standard library, CAF and the core of a member, which nearly
/// every file above engine/ includes.
#pragma once

#include "cmake/precompiled/standard.hpp"
#include "starling/actor/caf.hpp"
#include "starling/engine/core/member/member_core.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>
