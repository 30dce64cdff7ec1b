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

# check, what is planted (path: text), and what the one complaint must say.
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
     "models/kernels may not include models/data, which stands above it"),
    ("includes", {"actor/job/shell.cpp": "#include <caf/all.hpp>\n"},
     "<caf/all.hpp> may only be included by actor/caf"),
    ("includes", {"models/kernel.hpp": HEADER + "#include <Eigen/Core>\n"},
     "models/kernel.hpp:3: <Eigen/Core> may only be included by models/.*\\.cpp"),
    ("includes", {"base/text.cpp": "\n#  include <boost/any.hpp>\n"},
     "base/text.cpp:2: <boost/any.hpp> is of no library that may be included here"),
    ("includes", {"base/text.cpp": "#include <unistd.h>\n"}, "<unistd.h> may only be"),
    ("includes", {"base/text.cpp": '#include "text.hpp"\n'}, '"text.hpp" is no file'),
    ("includes", {"base/text.cpp": '#include "base/text.hpp"\n'}, '"base/text.hpp" is no file'),
    ("includes", {"base/text.cpp": "#include <starling/base/text.hpp>\n"}, "is ours"),
    ("includes", {"base/text.cpp": '#include "tests/help.hpp"\n', "tests/help.hpp": HEADER},
     "is no part of a library"),
    ("includes", {"base/extra/new.cpp": "\n"}, "stands in no known folder"),
    ("includes", {"engine/extra/new.hpp": HEADER}, "stands in no known folder"),
    ("includes", {"starling.hpp": HEADER + '#include "starling/base/none.hpp"\n'}, "is no file"),
    ("includes", {"starling.hpp": HEADER + "#include <boost/any.hpp>\n"}, "is of no library"),
    ("includes", {"base/own.hpp": "/// Internal: a header.\n#pragma once\n",
                  "base/text.hpp": HEADER + '#include "starling/base/own.hpp"\n'},
     "base/text.hpp:3: \"starling/base/own.hpp\" is not installed, and this header is"),
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
     "base/dead.hpp:1: nobody includes this header"),
    ("files", {"lost/CMakeLists.txt": "\n", "tests/lost/CMakeLists.txt": "\n"},
     "tests/lost/CMakeLists.txt:1: no CMakeLists.txt above it adds"),
    ("files", {"cmake/Dead.cmake": "\n"}, "cmake/Dead.cmake:1: nobody includes this module"),
    ("folders", {f"models/data/{i}.md": "\n" for i in range(tree.FILES_MAX + 1)},
     "models/data/: 31 files, at most 30"),
    ("length", {"base/text.cpp": "\n" * (tree.LINES_MAX + 1)}, "401 lines, at most 400"),
    ("headers", {"base/text.hpp": "/// A header.\n"}, "no #pragma once"),
    ("headers", {"base/text.hpp": "#pragma once\n\nnamespace a {\nint b;\n/// c\n}\n"},
     "opens with a /// comment"),
    ("shell", {"tools/run": "#!/usr/bin/env bash\nif true; then\n"}, "tools/run:1: does not parse"),
    ("shell", {"tools/other": "#!/bin/sh\n"}, "tools/other:1: is a script but not executable"),
    ("words", {"base/text.cpp": "struct Letter {};\n"}, "base/text.cpp:1: 'Letter' is called PeerMessage"),
    ("words", {"base/text.cpp": "int a;  // 1\n/// Of the rows.\n"}, "text.cpp:2: 'Of': no plain"),
    ("words", {"base/text.cpp": "// Rows. What is\n// it?\n"}, "text.cpp:1: 'What': no plain"),
    ("words", {"base/text.cpp": "// Rows of it are\n// as good as lost.\n"}, "'as good as': no"),
    ("format", {"base/text.cpp": "int  a;\n"}, "base/text.cpp:1: not laid out"),
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
            bad = pathlib.Path(folder) / "base/bad.hpp"
            bad.parent.mkdir(parents=True)
            bad.write_text("int a;\n", encoding="utf-8")
            self.assertEqual(tree.main(["headers", folder]), 1)
            bad.write_text(HEADER, encoding="utf-8")
            self.assertEqual(tree.main(["headers", folder]), 0)
        self.assertEqual(tree.main(["unheard_of", folder]), 2)


if __name__ == "__main__":
    unittest.main()
