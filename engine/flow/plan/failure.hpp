/// Why a task failed, and at which record. Plain values; thread-safe to read.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "starling/base/result.hpp"

namespace starling::flow {

/// Thrown by Starling's own code inside a task, for example when a file cannot be read. A task ends
/// its stage's loop with it, and the job's action returns it as an Error.
class TaskFailure : public std::runtime_error {
 public:
  explicit TaskFailure(const Error& error) : std::runtime_error(error.message) {}
};

/// Calls `run`. If it throws, puts the location of the record that was being processed in front of
/// the message, as `location()` returns it: "corpus.txt:17: ...".
template <class Run, class Location>
void run_located(const Run& run, const Location& location) {
  try {
    run();
  } catch (const TaskFailure&) {
    throw;  // has its location already
  } catch (const std::bad_alloc&) {
    throw TaskFailure{Error{"out of memory; valid: more and smaller parts"}.within(location())};
  } catch (const std::exception& fault) {
    throw TaskFailure{Error{fault.what()}.within(location())};
  } catch (...) {
    throw TaskFailure{Error{"an exception of unknown type"}.within(location())};
  }
}

}  // namespace starling::flow
