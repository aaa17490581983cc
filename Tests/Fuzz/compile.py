#!/usr/bin/env python3
"""Builds the fuzzer into DIRECTORY, from what `swift build` has left in .build.

Only the code under test is compiled again, with libFuzzer's instrumentation: the wire, the names, directories, typed messages and
archives, the parsers of settings and of TXT records. Every other module is linked as it was built for the tests, so that neither NIO nor BoringSSL is built a second time. How modules
are compiled and found is read from the build's own manifest.
"""

import json
import pathlib
import re
import subprocess
import sys

# What Settings and TXT records are made of lives in targets of which the rest is of no use here; compiled into the fuzzer itself.
PARSERS = [
    "Sources/earshotd/Settings",
    "Sources/earshotd/Control/Caller.swift",
    "Sources/EarshotDiscovery/TXTRecord.swift",
    "Sources/EarshotDiscovery/DiscoveryLimits.swift",
]


def command(manifest, name):
    """The words of a command of the build."""
    found = re.search(rf'^  "{re.escape(name)}":.*?^    args: (\[.*?\])$', manifest, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"compile.py: the build has no {name}; run swift build --build-tests first")
    return json.loads(found.group(1))


def module_options(words):
    """Of a compiler's command, what finds modules and says which language it is."""
    options = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in ("-I", "-target", "-swift-version", "-enable-upcoming-feature", "-package-name"):
            options += words[position : position + 2]
            position += 2
        elif word == "-Xcc":
            options += words[position : position + 2]
            position += 2
        else:
            position += 1
    return options


def sources(*places):
    files = []
    for place in map(pathlib.Path, places):
        found = sorted(place.rglob("*.swift")) if place.is_dir() else [place]
        if not found:
            sys.exit(f"compile.py: there are no sources in {place}")
        files += map(str, found)
    return files


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    manifest = pathlib.Path(".build/debug.yaml").read_text()
    triple = pathlib.Path(".build/debug").resolve().parent.name
    swiftc, *words = command(manifest, f"C.earshotd-{triple}-debug.module")
    options = module_options(words)
    flags = ["-O", "-g", "-wmo", "-parse-as-library", "-sanitize=fuzzer", "-warnings-as-errors"]
    objects = []

    def module(name, files, *extra):
        output = str(directory / f"{name}.o")
        subprocess.run(
            [swiftc, "-module-name", name, *flags, "-I", str(directory), *options, *extra, "-c", *files, "-o", output], check=True
        )
        objects.append(output)

    # Ours before the build's own on the search path.
    module("EarshotSafety", sources("Sources/EarshotSafety"), "-emit-module", "-emit-module-path", str(directory / "EarshotSafety.swiftmodule"))
    module("EarshotCoding", sources("Sources/EarshotCoding"), "-emit-module", "-emit-module-path", str(directory / "EarshotCoding.swiftmodule"))
    module("EarshotWire", sources("Sources/EarshotWire"), "-emit-module", "-emit-module-path", str(directory / "EarshotWire.swiftmodule"))
    module("EarshotTree", sources("Sources/EarshotTree"), "-emit-module", "-emit-module-path", str(directory / "EarshotTree.swiftmodule"))
    module("Fuzz", sources("Tests/Fuzz/Harnesses", *PARSERS))

    ours = re.compile(r"/(EarshotCoding|EarshotSafety|EarshotTree|EarshotWire|earshotd)\.build/")
    listed = pathlib.Path(".build/debug/earshotd.product/Objects.LinkFileList").read_text().split("\n")
    others = [line.strip("'") for line in listed if line and not ours.search(line)]
    response = directory / "objects"
    response.write_text("\n".join(json.dumps(path) for path in [*objects, *others]))
    subprocess.run(
        [swiftc, "-sanitize=fuzzer", "-o", str(directory / "fuzz"), f"@{response}", "-lsqlite3", "-lavahi-common", "-lstdc++", "-lm", "-lz"],
        check=True,
    )


main()
