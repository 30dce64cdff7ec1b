/// The program `starling`: see starling/app/main.hpp.
#include "starling/app/main.hpp"

int main(int argc, char** argv) { return starling::main(argc, argv); }
