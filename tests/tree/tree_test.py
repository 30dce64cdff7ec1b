#!/usr/bin/env python3
"""Shows that each check of tree.py reports a planted violation, and passes without one."""
import os
import pathlib
import tempfile
import unittest

import tree

HEADER = "/// A header.\n#pragma once\n"
# A tree without violations, as path: text.
CLEAN = {
    ".clang-format": "BasedOnStyle: Google\n",
    "CMakeLists.txt": "include(Speed)\nforeach(folder base barrier models tests)\nendforeach()\n"
                      "add_subdirectory(base)\nadd_subdirectory(barrier)\nadd_subdirectory(models)\n"
                      "add_subdirectory(tests)\nadd_subdirectory(tests/benchmarks)\n",
    "starling.hpp": HEADER + '#include "starling/barrier/bsp.hpp"\n',
    "cmake/Speed.cmake": "# Nothing.\n",
    "base/CMakeLists.txt": "starling_library(base SOURCES text.cpp)\n",
    "base/text.hpp": HEADER + "#include <string>\n",
    "base/text.cpp": '#include "starling/base/text.hpp"\n',
    "barrier/CMakeLists.txt": "starling_library(barrier SOURCES bsp.cpp)\n",
    "barrier/bsp.hpp": HEADER + '#include <chrono>\n\n#include "starling/base/text.hpp"\n',
    "barrier/asp.hpp": "#pragma once\n\nnamespace starling {\n\n/// A rule.\nstruct Asp {};\n\n"
                       "}  // namespace starling\n",
    "barrier/bsp.cpp": '#include "starling/barrier/bsp.hpp"\n\n#include "starling/barrier/asp.hpp"\n'
                       '// Not a steady_clock, and no "mt19937".\n',
    "models/CMakeLists.txt": "starling_library(models SOURCES kernel.cpp)\n",
    "models/kernel.cpp": '#include <zlib.h>\n\n#include "starling/base/text.hpp"\n',
    "tests/CMakeLists.txt": "foreach(name one)\n  starling_test(${name} SOURCES ${name}.cpp)\nendforeach()\n",
    "tests/one.cpp": '#include <caf/all.hpp>\n\n#include "starling/barrier/bsp.hpp"\n'
                     '#include "starling/starling.hpp"\n',
    "tests/benchmarks/CMakeLists.txt": "# None.\n",
    "tools/run": "#!/bin/bash\necho run\n",
}

# The check, the files that it must refuse (path: text), and a part of the violation's message.
PLANTED = [
    ("includes", {"base/text.cpp": '#include "starling/barrier/bsp.hpp"\n'},
     "base/text.cpp:1: base may not include barrier"),
    ("includes", {"barrier/bsp.cpp": '#include "starling/models/table.hpp"\n', "models/table.hpp": HEADER},
     "barrier/bsp.cpp:1: barrier may not include models"),
    ("includes", {"engine/core/worker/worker.cpp": '#include "starling/actor/job/shell.hpp"\n',
                  "actor/job/shell.hpp": HEADER},
     "engine/core may not include actor"),
    ("includes", {"models/kernels/gemm.cpp": '#include "starling/models/data/table.hpp"\n',
                  "models/data/table.hpp": HEADER},
     "models/kernels may not include models/data, which FOLDERS lists after it"),
    ("includes", {"actor/job/shell.cpp": "#include <caf/all.hpp>\n"},
     "<caf/all.hpp> may only be included by actor/caf"),
    ("includes", {"models/kernel.hpp": HEADER + "#include <Eigen/Core>\n"},
     "models/kernel.hpp:3: <Eigen/Core> may only be included by models/.*\\.cpp"),
    ("includes", {"base/text.cpp": "\n#  include <boost/any.hpp>\n"},
     "base/text.cpp:2: <boost/any.hpp> belongs to no library that may be included"),
    ("includes", {"base/text.cpp": "#include <unistd.h>\n"}, "<unistd.h> may only be"),
    ("includes", {"base/text.cpp": '#include "text.hpp"\n'}, '"text.hpp" is not a file'),
    ("includes", {"base/text.cpp": '#include "base/text.hpp"\n'}, '"base/text.hpp" is not a file'),
    ("includes", {"base/text.cpp": "#include <starling/base/text.hpp>\n"}, "is a header of this tree"),
    ("includes", {"base/text.cpp": '#include "tests/help.hpp"\n', "tests/help.hpp": HEADER},
     "is not part of a library"),
    ("includes", {"base/extra/new.cpp": "\n"}, "its folder is not listed in FOLDERS"),
    ("includes", {"engine/extra/new.hpp": HEADER}, "its folder is not listed in FOLDERS"),
    ("includes", {"starling.hpp": HEADER + '#include "starling/base/none.hpp"\n'}, "is not a file"),
    ("includes", {"starling.hpp": HEADER + "#include <boost/any.hpp>\n"}, "belongs to no library"),
    ("includes", {"base/own.hpp": "/// Internal: a header.\n#pragma once\n",
                  "base/text.hpp": HEADER + '#include "starling/base/own.hpp"\n'},
     "base/text.hpp:3: \"starling/base/own.hpp\" is not installed, but this header is"),
    ("headers", {"starling.hpp": "/// A header.\n"}, "no #pragma once"),
    ("purity", {"barrier/bsp.cpp": "#include <random>\n"}, "<random>: no random generator"),
    ("purity", {"barrier/bsp.cpp": "#include <mutex>\n"}, "<mutex>: no thread"),
    ("purity", {"engine/core/a.hpp": "#include <iostream>\n"}, "no input or output"),
    ("purity", {"engine/sim/a.cpp": "\nauto t = std::chrono::steady_clock::now();\n"},
     "engine/sim/a.cpp:2: steady_clock: no clock"),
    ("purity", {"barrier/bsp.cpp": "/* a\n b */ std::random_device d;\n"},
     "barrier/bsp.cpp:2: random_device: no random generator"),
    ("purity", {"barrier/bsp.cpp": "char c = '\"'; std::jthread t;\n"}, "no thread"),
    ("purity", {"barrier/bsp.cpp": "printf(1);\n"}, "no input or output"),
    ("files", {"base/dead.cpp": "\n"}, "base/dead.cpp:1: no CMakeLists.txt"),
    ("files", {"base/ext.cpp": "\n"}, "base/ext.cpp:1: no CMakeLists.txt"),
    ("files", {"base/dead.hpp": '#include "starling/base/dead.hpp"\n'},
     "base/dead.hpp:1: no file includes this header"),
    ("files", {"lost/CMakeLists.txt": "\n", "tests/lost/CMakeLists.txt": "\n"},
     "tests/lost/CMakeLists.txt:1: no CMakeLists.txt above it adds"),
    ("files", {"cmake/Dead.cmake": "\n"}, "cmake/Dead.cmake:1: no file includes this module"),
    ("folders", {f"models/data/{i}.md": "\n" for i in range(tree.FILES_MAX + 1)},
     "models/data/: 31 files, at most 30"),
    ("length", {"base/text.cpp": "\n" * (tree.LINES_MAX + 1)}, "401 lines, at most 400"),
    ("headers", {"base/text.hpp": "/// A header.\n"}, "no #pragma once"),
    ("headers", {"base/text.hpp": "#pragma once\n\nnamespace a {\nint b;\n/// c\n}\n"},
     "begins with a /// comment"),
    ("shell", {"tools/run": "#!/usr/bin/env bash\nif true; then\n"}, "tools/run:1: does not parse"),
    ("shell", {"tools/other": "#!/bin/sh\n"}, "tools/other:1: is a script but not executable"),
    ("words", {"base/text.cpp": "struct Letter {};\n"}, "base/text.cpp:1: 'Letter' is now called PeerMessage"),
    ("words", {"base/text.cpp": "void on(Pass& context);\n"}, "'Pass' is now called ComputeContext"),
    ("words", {"base/text.cpp": "/// Whether it is one.\n"}, "text.cpp:1: 'Whether': not a plain"),
    ("words", {"base/text.cpp": "int a;  // 1\n/// Of the rows.\n"}, "text.cpp:2: 'Of': not a plain"),
    ("words", {"base/text.cpp": "// Rows. What is\n// it?\n"}, "text.cpp:1: 'What': not a plain"),
    ("words", {"base/text.cpp": "// Rows of it are\n// as good as lost.\n"}, "'as good as': not"),
    ("format", {"base/text.cpp": "int  a;\n"}, "base/text.cpp:1: not formatted"),
]


class TreeTest(unittest.TestCase):
    def violations(self, check, planted):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (CLEAN | planted).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            os.chmod(root / "tools/run", 0o755)
            return list(tree.CHECKS[check](root))

    def skip_without_its_program(self, check):
        if check == "format" and (reason := tree.why_no_format()):
            self.skipTest(reason)

    def test_a_clean_tree_passes(self):
        for check in tree.CHECKS:
            with self.subTest(check):
                self.skip_without_its_program(check)
                self.assertEqual(self.violations(check, {}), [])

    def test_each_planted_violation_is_reported(self):
        for check, planted, expected in PLANTED:
            with self.subTest(check=check, planted=planted):
                self.skip_without_its_program(check)
                violations = self.violations(check, planted)
                self.assertEqual(len(violations), 1, violations)
                self.assertIn(expected, violations[0])

    def test_each_check_has_a_planted_violation(self):
        self.assertEqual({check for check, _, _ in PLANTED}, set(tree.CHECKS))

    def test_violations_fail_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(tree.main(["headers", folder]), 2)
            bad = pathlib.Path(folder) / "base/bad.hpp"
            bad.parent.mkdir(parents=True)
            bad.write_text("int a;\n", encoding="utf-8")
            self.assertEqual(tree.main(["headers", folder]), 1)
            bad.write_text(HEADER, encoding="utf-8")
            self.assertEqual(tree.main(["headers", folder]), 0)
        self.assertEqual(tree.main(["unknown_check", folder]), 2)


if __name__ == "__main__":
    unittest.main()
