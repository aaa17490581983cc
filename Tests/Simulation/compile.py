#!/usr/bin/env python3
"""Builds the simulator into DIRECTORY with every planted fault of Tests/Simulation/Mutants in it, of which EARSHOT_MUTANT picks one.

The faults are patches of a copy of the core: none is in Sources. Only the core and the simulator are compiled again, optimized; every other
module is linked as `swift build` has left it in .build. How modules are compiled and found is read from the build's own manifest.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys


def command(manifest, name):
    """The words of a command of the build."""
    found = re.search(rf'^  "{re.escape(name)}":.*?^    args: (\[.*?\])$', manifest, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"compile.py: the build has no {name}; run swift build --product simulate first")
    return json.loads(found.group(1))


def module_options(words):
    """Of a compiler's command, what finds modules and says which language it is."""
    options = []
    position = 0
    while position < len(words):
        if words[position] in ("-I", "-target", "-swift-version", "-enable-upcoming-feature", "-package-name", "-Xcc"):
            options += words[position : position + 2]
            position += 1
        position += 1
    return options


def sources(place):
    return sorted(str(file) for file in pathlib.Path(place).rglob("*.swift") if "Mutants" not in file.parts)


def main():
    directory = pathlib.Path(sys.argv[1])
    shutil.rmtree(directory, ignore_errors=True)
    core = directory / "Sources/EarshotCore"
    shutil.copytree("Sources/EarshotCore", core)
    shutil.copy("Tests/Simulation/Mutants/Mutant.swift", core)
    patches = sorted(pathlib.Path("Tests/Simulation/Mutants").glob("*.patch"))
    if len(patches) < 20:
        sys.exit(f"compile.py: {len(patches)} planted faults are too few")
    for patch in patches:
        applied = subprocess.run(
            ["patch", "--batch", "--forward", "--silent", "--no-backup-if-mismatch", "-p1", "-d", str(directory), "-i", str(patch.resolve())],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if applied.returncode != 0:
            sys.exit(f"compile.py: {patch} does not apply any more:\n{applied.stdout}")
        if f'Mutant.is("{patch.stem}")' not in patch.read_text():
            sys.exit(f"compile.py: {patch} does not ask whether it is meant")
    manifest = pathlib.Path(".build/debug.yaml").read_text()
    triple = pathlib.Path(".build/debug").resolve().parent.name
    swiftc, *words = command(manifest, f"C.Simulation-{triple}-debug.module")
    flags = ["-O", "-wmo", "-I", str(directory), *module_options(words)]
    objects = []

    def module(name, files, *extra):
        output = str(directory / f"{name}.o")
        subprocess.run([swiftc, "-module-name", name, *flags, *extra, "-c", *files, "-o", output], check=True)
        objects.append(output)

    def library(name, files):
        module(name, files, "-parse-as-library", "-emit-module", "-emit-module-path", str(directory / f"{name}.swiftmodule"))

    # Ours before the build's own on the search path.
    library("EarshotCore", sources(core))
    library("Simulation", sources("Tests/Simulation"))
    module("simulate", sources("Tests/Simulator"))
    ours = re.compile(r"/(EarshotCore|Simulation|simulate)\.build/")
    listed = pathlib.Path(".build/debug/simulate.product/Objects.LinkFileList").read_text().split("\n")
    others = [line.strip("'") for line in listed if line and not ours.search(line)]
    response = directory / "objects"
    response.write_text("\n".join(json.dumps(path) for path in [*objects, *others]))
    subprocess.run([swiftc, "-o", str(directory / "simulate"), f"@{response}", "-lstdc++", "-lm"], check=True)


main()
