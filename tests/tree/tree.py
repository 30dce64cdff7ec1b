#!/usr/bin/env python3
"""Checks the source tree: tree.py CHECK ROOT.

Prints one line for each violation, `file:line: what broke which rule`. Exits with 1 if there is a
violation, and with 77 if the check could not run. docs/design/0001-layout.md gives the reasons for
the rules. tree_test.py shows that each check fails on a planted violation.
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

# All folders with code, in the order of inclusion: a file may include files of its own folder and of
# folders listed before that, if LAYERS allows it too.
FOLDERS = """
    base base/distributions
    barrier/rules barrier
    models/kernels models/optimizer/optimizers models/optimizer/schedules models/optimizer/clips
    models/optimizer/compressions
    models/optimizer models
    models/data/source models/data/generators models/data/formats models/data
    models/tabular models/net/layers models/net models/built_in
    models/cuda/kernels models/cuda models/cuda/layers models/cuda/training
    engine/flow/values engine/flow/plan engine/flow/shuffle engine/flow/chain engine/flow
    engine/core engine/core/channel engine/core/council engine/core/deals engine/core/membership engine/core/worker
    engine/core/role engine/exchange engine/exchange/ownership engine/exchange/broadcast engine/exchange/gossip
    engine/exchange/collective engine/exchange/collective/algorithms engine/exchange/allreduce engine/exchange/average engine/exchange/leader
    engine/exchange/elastic engine/core/training
    engine/core/flow engine/core/member engine/work
    engine/sim engine/sim/membership engine/sim/exchange_steps engine/sim/steps engine/sim/protocol engine/sim/chaos engine/sim/scaling
    actor actor/flow actor/fabric actor/wire actor/security actor/compute actor/job actor/train actor/engines actor/cluster
    actor/flow_job
    tools/files tools/program tools/registry tools/job tools/report tools/train tools/bench tools/chaos
    tools/collective tools/scale tools/run/flows tools/run
    tools/sim tools/advise tools/repro tools/repro/barriers tools/repro/exchanges tools/twin tools/cluster/keys tools/cluster/follow tools/cluster
    tools/command_line tools
""".split()
# Each layer (a folder with its subfolders), and the other layers that it may include.
LAYERS = {
    "base": [],
    "barrier": ["base"],
    "models": ["base"],
    "engine/core": ["base", "barrier", "models", "engine/exchange", "engine/flow"],
    "engine/exchange": ["base", "barrier", "models", "engine/core"],
    "engine/work": ["base", "barrier", "models", "engine/core", "engine/exchange"],
    "engine/flow": ["base"],
    "engine/sim": ["base", "barrier", "models", "engine"],
    "actor": ["base", "barrier", "models", "engine/core", "engine/exchange", "engine/work", "engine/flow"],
    "tools": ["base", "barrier", "models", "engine", "actor"],
}
LIBRARIES = tuple(dict.fromkeys(layer.split("/")[0] for layer in LAYERS))
TOP = (*LIBRARIES, "tests", "examples", "cmake", "docs", ".ci")

# These files at the root of the tree are checked too.
AT_THE_ROOT = ("CMakeLists.txt", "starling.hpp")

LINES_MAX = 400
FILES_MAX = 30

# External headers: a pattern of their names, and a pattern of the files that may include them. The
# folders above may not include a header that matches no pattern. Tests may include any header.
EXTERNAL_HEADERS = {
    r"Eigen/|unsupported/Eigen/|dnnl": r"models/.*\.cpp",
    r"(zlib|zip|png|turbojpeg)\.h$": r"(models|tools)/.*\.cpp",
    r"cuda|cublas|cudnn": r"models/cuda/.*",
    r"caf/": r"actor/caf\.hpp",
    r"zmq|cereal/": r"actor/wire/.*",
    r"sodium": r"actor/.*\.cpp", r"rdma/": r"actor/fabric/.*\.cpp",
    r"CLI/|toml|fmt/|nlohmann/": r"(tools|examples|cmake/precompiled)/.*",
    # Headers of the operating system and the processor: never in an installed header.
    r"(sys|netinet|arpa|linux)/|(malloc|netdb|unistd|fcntl|poll|pthread|sched|signal|spawn|dlfcn|\w+intrin)\.h$":
        r"(base/(tensor_pool|input|mapped_file|memory)|(models|actor|tools)/.*)\.cpp|(tools|examples)/.*",
}

# Headers with paths, which CMake writes for the tests.
GENERATED = {"programs.hpp", "test_paths.hpp"}

# These folders receive the time with each event and random numbers as an argument, and return output
# as a value. They may use the durations of <chrono>.
PURE = ("barrier", "engine")
IMPURE_HEADERS = {
    "clock": {"ctime"},
    "random generator": {"random"},
    "thread": {"thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore",
               "latch", "barrier", "stop_token"},
    "input or output": {"iostream", "ostream", "istream", "fstream", "filesystem", "cstdio",
                        "syncstream", "csignal"},
}
IMPURE_WORDS = {
    "clock": r"(?:system|steady|high_resolution|utc|file)_clock|clock_gettime|gettimeofday|(?:std::)?time\s*\(\s*(?:0|NULL|nullptr)\s*\)",
    "random generator": r"random_device|mt19937(?:_64)?|minstd_rand0?|default_random_engine|s?rand\s*\(",
    "thread": r"this_thread|std::j?thread|thread_local|std::async|pthread_\w+",
    "input or output": r"std::c(?:out|err|log|in)\b|f?printf\s*\(|fopen|getenv|::socket\s*\(|spdlog",
}

# Names that this code once used, and the standard terms that replace them
# (docs/concepts/glossary.md).
RETIRED = {
    "Letter": "PeerMessage", "Verdict": "LivenessUpdate, JobOutcome, DrawResult or ClaimStatus",
    "Standing": "WorkerStatus, StepCounts or KeyAccess", "Witness": "InvariantChecker",
    "Contents": "Registry", "Scene": "JobContext", "JobSite": "LocalJob", "Company": "JobRunner",
    "Asker": "Requester", "Alarm": "Timer", "Outlet": "OutboundConnection", "Lane": "TrafficClass",
    "Conductor": "TestScheduler", "WorkerDesk": "StepExecutor", "Greeting": "EpochProbe",
    "Receipt": "PushResult", "Surroundings": "WorkerConfiguration", "Holdings": "RangeReport",
    "Endings": "Reaper", "NodeBook": "NodeTable", "LogBook": "LogBuffer", "Tally": "Accumulator",
    "Lab": "ExperimentRunner", "Findings": "ExperimentResults", "Complaint": "SuspicionReport",
    "WorkerId": "MemberId", "MemberRecord": "NodeRecord", "carry_out": "execute", "hire": "spawn",
    "knock": "ask", "life": "incarnation", "NotifyAt": "NotifyRequest", "CaughtUp": "Notice",
    "PluginDoor": "PluginEntry", "STARLING_CLONES": "STARLING_MULTIVERSION",
    "SiteOptions": "LocalJobOptions", "JobFacts": "JobDescription", "Farewell": "Disconnect",
    "ClusterView": "ClusterSnapshot", "Milestones": "PeriodicTrigger", "PlanMaker": "JobPreparer",
    "Library": "KernelLibrary", "Pass": "ComputeContext", "Turn": "StepContext",
    "TurnState": "StepState", "StopsJob": "NodeJobHandle", "check_start": "check_initial_states",
    "start_parameters": "initial_parameters", "forms_of": "examples_of",
    "roles_of_newcomer": "members_of_joining_node", "class_figures": "classification_metrics",
    "add_founders": "add_initial_members", "wanted_owner_count": "requested_owner_count",
    "prediction_figures": "prediction_metrics", "target_figures": "regression_metrics",
}
RETIRED_WORD = re.compile(r"\b(" + "|".join(RETIRED) + r")\b")
# Beginnings of sentences, and phrases, that make a comment hard to understand.
UNCLEAR_PHRASE = re.compile(
    r"(?:^|[.:;] )(Of|Those|What|Whether|Whom|Whoever|Whose|Who)\b|\b(as good as|has its part)\b")
COMMENT = re.compile(r"^\s*///? ?(.*)$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Skipped(Exception):
    """The check could not run; the message says why."""


def paths(root, *patterns):
    """Returns the files of the tree that match a glob, as sorted paths relative to root."""
    found = set()
    for top in TOP:
        for pattern in patterns:
            found.update(p for p in (root / top).rglob(pattern) if p.is_file())
    for pattern in patterns:
        found.update(p for p in root.glob(pattern) if p.is_file() and p.name in AT_THE_ROOT)
    return sorted(str(p.relative_to(root)) for p in found if "__pycache__" not in p.parts)


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def inclusions(root, path):
    """Yields (line number, True if written in angle brackets, the included header)."""
    for number, line in enumerate(read(root, path).splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == "<", match[2]


def layer_of(path):
    return next((layer for layer in LAYERS if path.startswith(layer + "/")), None)


def source_of(root, header):
    """Returns the included file, or None: "starling/base/text.hpp" is base/text.hpp in the tree."""
    path = header.removeprefix("starling/")
    is_library_header = path != header and (layer_of(path) or "/" not in path)
    is_root_relative = header.startswith(("tests/", "cmake/"))
    return path if (is_library_header or is_root_relative) and (root / path).is_file() else None


def is_external(header):
    """True unless the name has neither dot nor slash, as names of standard headers do."""
    return "/" in header or "." in header


def check_includes(root):
    """Folders include only those listed before them, and external headers only where allowed."""
    for path in paths(root, "*.hpp", "*.cpp", "*.cu"):
        layer = layer_of(path)
        if path.split("/")[0] in LIBRARIES and str(pathlib.Path(path).parent) not in FOLDERS:
            yield f"{path}:1: its folder is not listed in FOLDERS in tests/tree/tree.py"
            continue
        for number, angled, header in inclusions(root, path):
            at = f"{path}:{number}: "
            if angled:
                yield from (at + m for m in external_violations(path, header))
                continue
            if path.startswith("tests/install/outside/") or header in GENERATED:
                continue
            source = source_of(root, header)
            if source is None:
                yield at + f'"{header}" is not a file; valid: starling/FOLDER/NAME or tests/...'
            elif layer:
                yield from (at + m for m in layer_violations(path, layer, source, header))
                if path.endswith(".hpp") and is_internal(root, source) and not is_internal(root, path):
                    yield at + f'"{header}" is not installed, but this header is'


def is_internal(root, path):
    """True for headers that are not installed; see cmake/StarlingInstall.cmake."""
    return read(root, path).startswith("/// Internal")


def layer_violations(path, layer, source, header):
    target = layer_of(source)
    if target is None:
        yield f'"{header}" is not part of a library; {layer} may not include it'
        return
    if target != layer and target not in LAYERS[layer] and target.split("/")[0] not in LAYERS[layer]:
        allowed = ", ".join(LAYERS[layer]) or "nothing"
        yield f"{layer} may not include {target} (it may include: {allowed})"
        return
    folders = [str(pathlib.Path(p).parent) for p in (path, source)]
    if all(f in FOLDERS for f in folders) and FOLDERS.index(folders[0]) < FOLDERS.index(folders[1]):
        yield f"{folders[0]} may not include {folders[1]}, which FOLDERS lists after it"


def external_violations(path, header):
    if not is_external(header) or path.startswith("tests/"):
        return
    if header.startswith("starling/"):
        yield f'<{header}> is a header of this tree; write "{header}"'
        return
    for pattern, allowed_files in EXTERNAL_HEADERS.items():
        if re.match(pattern, header):
            if not re.fullmatch(allowed_files, path):
                yield f"<{header}> may only be included by {allowed_files}"
            return
    if layer_of(path) or path == "starling.hpp":
        yield (f"<{header}> belongs to no library that may be included; "
               "see EXTERNAL_HEADERS in tests/tree/tree.py")


def without_comments(text):
    """Returns the text without comments and literals, but with all its line breaks."""
    pattern = r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'"""
    return re.sub(pattern, lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


def check_purity(root):
    """No clock, random generator, thread, input or output in barrier and engine."""
    for path in paths(root, "*.hpp", "*.cpp"):
        if not path.startswith(tuple(p + "/" for p in PURE)):
            continue
        for number, angled, header in inclusions(root, path):
            for kind, headers in IMPURE_HEADERS.items():
                if angled and header in headers:
                    yield f"{path}:{number}: <{header}>: no {kind} in {' or '.join(PURE)}"
        for number, line in enumerate(without_comments(read(root, path)).splitlines(), 1):
            for kind, words in IMPURE_WORDS.items():
                match = re.search(r"(?<!\w)(?:" + words + ")", line)
                if match:
                    yield f"{path}:{number}: {match[0]}: no {kind} in {' or '.join(PURE)}"


def check_files(root):
    """Every file is used: sources are built, headers are included, folders are added by CMake."""
    lists = {str(pathlib.Path(p).parent): re.sub(r"#[^\n]*", "", read(root, p))
             for p in paths(root, "CMakeLists.txt")}
    for path in paths(root, "*.cpp", "*.cu"):
        if not any(builds(folder, text, path) for folder, text in lists.items()):
            yield f"{path}:1: no CMakeLists.txt above it names it"
    for folder, text in lists.items():
        if folder == "." or re.search(r"^\s*project\(", text, re.M):
            continue
        above = [str(parent) for parent in pathlib.Path(folder).parents]
        if not any(re.search(rf"add_subdirectory\(\s*{re.escape(folder.removeprefix(parent + '/'))}[\s)]",
                             lists.get(parent, "")) for parent in above):
            yield f"{folder}/CMakeLists.txt:1: no CMakeLists.txt above it adds this folder"
    sources = paths(root, "*.hpp", "*.cpp", "*.cu")
    included = {source for path in sources for _, _, header in inclusions(root, path)
                if (source := source_of(root, header)) != path}
    for path in paths(root, "*.hpp"):
        is_precompiled = path.startswith("cmake/precompiled/")  # CMake has the compiler include it
        if path not in included and not is_precompiled:
            yield f"{path}:1: no file includes this header"
    modules = " ".join(lists.values()) + "".join(read(root, p) for p in paths(root, "*.cmake"))
    for path in paths(root, "*.cmake"):
        stem = pathlib.Path(path).stem
        if path.startswith("cmake/") and not re.search(
                rf"include\({stem}\)|find_package\({stem.removeprefix('Find')}\b", modules):
            yield f"{path}:1: no file includes this module"


def builds(folder, text, path):
    """True if `text`, the CMakeLists.txt of `folder`, names `path`, with or without its .cpp."""
    if folder != "." and not path.startswith(folder + "/"):
        return False
    name = path.removeprefix(folder + "/").removesuffix(".cpp")
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(\.cpp)?(?![\w/.-])", text) is not None


def check_folders(root):
    """A folder with more than FILES_MAX files is likely to have two concepts."""
    files = collections.Counter(str(pathlib.Path(path).parent) for path in paths(root, "*"))
    for folder, count in files.items():
        if count > FILES_MAX:
            yield f"{folder}/: {count} files, at most {FILES_MAX}"


def check_length(root):
    """A file with more than LINES_MAX lines is likely to have two concepts."""
    for path in paths(root, "*.hpp", "*.cpp", "*.cu", "*.py", "*.cmake", "CMakeLists.txt", "*.sh"):
        lines = read(root, path).count("\n")
        if lines > LINES_MAX:
            yield f"{path}:{lines}: {lines} lines, at most {LINES_MAX}"


def check_headers(root):
    """Headers have #pragma once and begin with a comment that states their purpose."""
    for path in paths(root, "*.hpp"):
        text = read(root, path)
        if not re.search(r"^#pragma once$", text, re.M):
            yield f"{path}:1: no #pragma once"
        # Directives and the namespace may come before the comment; code may not.
        opening = re.sub(r"^(\s*#[^\n]*\n|\s*namespace [^\n]*\{\n|\s*\n)+", "", text)
        if not opening.lstrip().startswith("///"):
            yield f"{path}:1: a header begins with a /// comment: its purpose, and who may call it"


def check_shell(root):
    """Scripts are executable, and their syntax is valid."""
    for path in paths(root, "*"):
        with open(root / path, "rb") as file:
            first = file.readline()
        if not re.match(rb"#!.*\b(ba)?sh\b", first):
            continue
        if not (root / path).stat().st_mode & 0o100:
            yield f"{path}:1: is a script but not executable"
        done = subprocess.run(["bash", "-n", root / path], capture_output=True, text=True)
        if done.returncode != 0:
            yield f"{path}:1: does not parse: {done.stderr.strip()}"


def check_words(root):
    """Names are standard terms, and comments are plain sentences."""
    for path in paths(root, "*.hpp", "*.cpp", "*.cu"):
        after_comment = False  # a comment may continue that of the previous line
        for number, line in enumerate(read(root, path).splitlines(), 1):
            for match in RETIRED_WORD.finditer(line):
                yield f"{path}:{number}: '{match[0]}' is now called {RETIRED[match[0]]}"
            comment = COMMENT.match(line)
            for match in UNCLEAR_PHRASE.finditer(comment[1]) if comment else ():
                if match[2] or match.start() > 0 or not after_comment:
                    yield f"{path}:{number}: '{match[1] or match[2]}': not a plain sentence"
            after_comment = comment is not None


CLANG_FORMAT_MAJOR = 14  # other versions format some lines differently


def why_no_format():
    """Returns why this machine cannot check the format, or None if it can."""
    if shutil.which("clang-format") is None:
        return "clang-format is not installed"
    told = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    version = re.search(r"version (\d+)", told)
    if version is None or int(version[1]) != CLANG_FORMAT_MAJOR:
        return f"this is {told.strip()}; C++ is formatted by version {CLANG_FORMAT_MAJOR}"
    return None


def check_format(root):
    """C++ is formatted by .clang-format; tools/format does this."""
    if reason := why_no_format():
        raise Skipped(reason)
    sources = paths(root, "*.hpp", "*.cpp", "*.cu")
    if not sources:
        return
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", "--style=file", *sources],
                          cwd=root, capture_output=True, text=True)
    places = re.findall(r"^(.+?:\d+):\d+: error:", done.stderr, re.M)
    for place in dict.fromkeys(places):
        yield f"{place}: not formatted as .clang-format says; run tools/format"
    if done.returncode != 0 and not places:
        yield f".clang-format:1: clang-format failed: {done.stderr.strip()}"


CHECKS = {name.removeprefix("check_"): function for name, function in list(globals().items())
          if name.startswith("check_")}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in CHECKS:
        print(f"usage: tree.py {'|'.join(CHECKS)} ROOT", file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[1])
    if not paths(root, "*"):
        print(f"{root} is not a source tree", file=sys.stderr)
        return 2
    try:
        violations = list(CHECKS[arguments[0]](root))
    except Skipped as reason:
        print(f"skipped: {reason}")
        return 77
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
