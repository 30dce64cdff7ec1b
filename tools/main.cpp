/// The program `starling`: see starling/tools/command_line/main.hpp.
#include "starling/tools/command_line/main.hpp"

int main(int argc, char** argv) { return starling::main(argc, argv); }
