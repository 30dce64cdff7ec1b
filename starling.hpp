/// Everything a user's program needs: barriers, models, data, training, the parameter and peer
/// engines, and the program itself. Actors and map-reduce flows have headers of their own under
/// starling/actor; starling/tools/registry/flow.hpp adds a flow to the program.
#pragma once

#include "starling/actor/engines/engine.hpp"
#include "starling/actor/train/train.hpp"
#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/barrier/sampling.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/data/split.hpp"
#include "starling/models/model.hpp"
#include "starling/tools/command_line/main.hpp"
