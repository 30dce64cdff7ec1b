#!/usr/bin/env python3
"""Shows that each check of tree.py fails on a planted violation, names it, and passes without."""
import os
import pathlib
import shutil
import tempfile
import unittest

import tree

HEADER = "/// A header.\n#pragma once\n"
# A tree in which nothing is wrong.
CLEAN = {
    ".clang-format": "BasedOnStyle: Google\n",
    "CMakeLists.txt": "include(Speed)\nadd_subdirectory(starling)\nadd_subdirectory(tests)\n",
    "cmake/Speed.cmake": "# Nothing.\n",
    "starling/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(barrier)\n"
                               "add_subdirectory(models)\n",
    "starling/base/CMakeLists.txt": "starling_library(base SOURCES text.cpp)\n",
    "starling/base/text.hpp": HEADER + "#include <string>\n",
    "starling/base/text.cpp": '#include "starling/base/text.hpp"\n',
    "starling/barrier/CMakeLists.txt": "starling_library(barrier SOURCES bsp.cpp)\n",
    "starling/barrier/bsp.hpp": HEADER + '#include <chrono>\n\n#include "starling/base/text.hpp"\n',
    "starling/barrier/asp.hpp": "#pragma once\n\nnamespace starling {\n\n/// A rule.\nstruct Asp {};\n\n"
                                "}  // namespace starling\n",
    "starling/barrier/bsp.cpp": '#include "starling/barrier/bsp.hpp"\n\n#include "starling/barrier/asp.hpp"\n'
                                '// Not a steady_clock, and no "mt19937".\n',
    "starling/models/CMakeLists.txt": "starling_library(models SOURCES kernel.cpp)\n",
    "starling/models/kernel.cpp": '#include <zlib.h>\n\n#include "starling/base/text.hpp"\n',
    "tests/CMakeLists.txt": "foreach(name one)\n  starling_test(${name} SOURCES ${name}.cpp)\nendforeach()\n",
    "tests/one.cpp": '#include <caf/all.hpp>\n\n#include "starling/barrier/bsp.hpp"\n',
    "tools/run": "#!/bin/bash\necho run\n",
}

# check, what is planted (path: text), and what the one complaint must say.
PLANTED = [
    ("includes", {"starling/base/text.cpp": '#include "starling/barrier/bsp.hpp"\n'},
     "starling/base/text.cpp:1: starling/base may not include starling/barrier"),
    ("includes", {"starling/barrier/bsp.cpp": '#include "starling/models/table.hpp"\n',
                  "starling/models/table.hpp": HEADER},
     "starling/barrier/bsp.cpp:1: starling/barrier may not include starling/models"),
    ("includes", {"starling/engine/core/worker.cpp": '#include "starling/engine/live/shell.hpp"\n',
                  "starling/engine/live/shell.hpp": HEADER},
     "starling/engine/core may not include starling/engine/live"),
    ("includes", {"starling/engine/live/shell.cpp": "#include <caf/all.hpp>\n"},
     "<caf/all.hpp> may only be included by starling/actor/"),
    ("includes", {"starling/models/kernel.hpp": HEADER + "#include <Eigen/Core>\n"},
     "starling/models/kernel.hpp:3: <Eigen/Core> may only be included by starling/models/.*\\.cpp"),
    ("includes", {"starling/base/text.cpp": "\n#  include <boost/any.hpp>\n"},
     "starling/base/text.cpp:2: <boost/any.hpp> is of no library that may be included here"),
    ("includes", {"starling/base/text.cpp": "#include <unistd.h>\n"}, "<unistd.h> may only be"),
    ("includes", {"starling/base/text.cpp": '#include "text.hpp"\n'}, '"text.hpp" is no file'),
    ("includes", {"starling/base/text.cpp": "#include <starling/base/text.hpp>\n"}, "is ours"),
    ("includes", {"starling/base/text.cpp": '#include "tests/help.hpp"\n', "tests/help.hpp": HEADER},
     "is no part of a library"),
    ("includes", {"starling/extra/new.cpp": "\n"}, "stands in no known layer"),
    ("purity", {"starling/barrier/bsp.cpp": "#include <random>\n"}, "<random>: no random generator"),
    ("purity", {"starling/barrier/bsp.cpp": "#include <mutex>\n"}, "<mutex>: no thread"),
    ("purity", {"starling/engine/core/a.hpp": "#include <iostream>\n"}, "no input or output"),
    ("purity", {"starling/engine/core/a.cpp": "\nauto t = std::chrono::steady_clock::now();\n"},
     "starling/engine/core/a.cpp:2: steady_clock: no clock"),
    ("purity", {"starling/barrier/bsp.cpp": "/* a\n b */ std::random_device d;\n"},
     "starling/barrier/bsp.cpp:2: random_device: no random generator"),
    ("purity", {"starling/barrier/bsp.cpp": "char c = '\"'; std::jthread t;\n"}, "no thread"),
    ("purity", {"starling/barrier/bsp.cpp": "printf(1);\n"}, "no input or output"),
    ("files", {"starling/base/dead.cpp": "\n"}, "starling/base/dead.cpp:1: no CMakeLists.txt"),
    ("files", {"starling/base/ext.cpp": "\n"}, "starling/base/ext.cpp:1: no CMakeLists.txt"),
    ("files", {"starling/base/dead.hpp": '#include "starling/base/dead.hpp"\n'},
     "starling/base/dead.hpp:1: nobody includes this header"),
    ("files", {"starling/lost/CMakeLists.txt": "\n"}, "does not add this folder"),
    ("files", {"cmake/Dead.cmake": "\n"}, "cmake/Dead.cmake:1: nobody includes this module"),
    ("length", {"starling/base/text.cpp": "\n" * (tree.LINES_MAX + 1)}, "601 lines, at most 600"),
    ("headers", {"starling/base/text.hpp": "/// A header.\n"}, "no #pragma once"),
    ("headers", {"starling/base/text.hpp": "#pragma once\n\nnamespace a {\nint b;\n/// c\n}\n"},
     "opens with a /// comment"),
    ("shell", {"tools/run": "#!/usr/bin/env bash\nif true; then\n"}, "tools/run:1: does not parse"),
    ("shell", {"tools/other": "#!/bin/sh\n"}, "tools/other:1: is a script but not executable"),
    ("words", {"starling/base/text.cpp": "struct Letter {};\n"},
     "starling/base/text.cpp:1: 'Letter' is called PeerMessage"),
    ("words", {"starling/base/text.cpp": "int a;  // 1\n/// Of the rows.\n"}, "text.cpp:2: 'Of': no plain"),
    ("words", {"starling/base/text.cpp": "// Rows. What is\n// it?\n"}, "text.cpp:1: 'What': no plain"),
    ("words", {"starling/base/text.cpp": "// Rows of it are\n// as good as lost.\n"}, "'as good as': no"),
    ("format", {"starling/base/text.cpp": "int  a;\n"}, "starling/base/text.cpp:1: not laid out"),
]


class TreeTest(unittest.TestCase):
    def complaints(self, check, planted):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (CLEAN | planted).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            os.chmod(root / "tools/run", 0o755)
            return list(tree.CHECKS[check](root))

    def needed(self, check):
        if check == "format" and shutil.which("clang-format") is None:
            self.skipTest("clang-format is not installed")

    def test_a_clean_tree_passes(self):
        for check in tree.CHECKS:
            with self.subTest(check):
                self.needed(check)
                self.assertEqual(self.complaints(check, {}), [])

    def test_each_planted_violation_is_named(self):
        for check, planted, expected in PLANTED:
            with self.subTest(check=check, planted=planted):
                self.needed(check)
                complaints = self.complaints(check, planted)
                self.assertEqual(len(complaints), 1, complaints)
                self.assertIn(expected, complaints[0])

    def test_no_check_is_without_a_planted_violation(self):
        self.assertEqual({check for check, _, _ in PLANTED}, set(tree.CHECKS))

    def test_violations_fail_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(tree.main(["headers", folder]), 2)
            bad = pathlib.Path(folder) / "starling/base/bad.hpp"
            bad.parent.mkdir(parents=True)
            bad.write_text("int a;\n", encoding="utf-8")
            self.assertEqual(tree.main(["headers", folder]), 1)
            bad.write_text(HEADER, encoding="utf-8")
            self.assertEqual(tree.main(["headers", folder]), 0)
        self.assertEqual(tree.main(["unheard_of", folder]), 2)


if __name__ == "__main__":
    unittest.main()
