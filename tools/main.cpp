/// Runs the program `starling`, which starling/tools/command_line/main.hpp describes.
#include "starling/tools/command_line/main.hpp"

int main(int argc, char** argv) { return starling::main(argc, argv); }
