/// The outputs of `starling collective`: text, JSON and a picture. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/engine/exchange/collective/algorithms/choice.hpp"

namespace starling::program {

/// Describes the plan, its cost and the moves of each round.
[[nodiscard]] std::string plan_text(const collective::Plan& plan,
                                    const collective::Request& request,
                                    const collective::Network& network);
[[nodiscard]] std::string plan_json(const collective::Plan& plan,
                                    const collective::Request& request,
                                    const collective::Network& network);

/// Compares the costs of plans, the fastest first.
[[nodiscard]] std::string plans_text(const std::vector<collective::Plan>& plans,
                                     const collective::Request& request,
                                     const collective::Network& network);
[[nodiscard]] std::string plans_json(const std::vector<collective::Plan>& plans,
                                     const collective::Request& request,
                                     const collective::Network& network);

/// The most members and the most rounds of a picture.
inline constexpr std::size_t picture_members_max = 64;
inline constexpr std::size_t picture_rounds_max = 128;

/// Draws the moves as SVG: a line for each member, a column for each round, an arrow for each move
/// in the colour of its chunk, solid if the move adds and dashed if it copies.
[[nodiscard]] std::string plan_svg(const collective::Plan& plan,
                                   const collective::Request& request);

}  // namespace starling::program
