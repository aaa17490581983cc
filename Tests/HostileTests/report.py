#!/usr/bin/env python3
"""Prints the table of threats with what the given logs of `swift test` say of each row's tests; fails where one of them failed."""

import pathlib
import re
import sys

TESTS = pathlib.Path("Tests")


def shown_name(file, function):
    """What the log calls a test: its display name, or its function's."""
    source = "\n".join(path.read_text() for path in TESTS.rglob(f"{file}.swift"))
    found = re.search(rf'@Test\(\s*"([^"]*)"(?:(?!@Test).)*?\bfunc {function}\(', source, re.DOTALL)
    return f'"{found.group(1)}"' if found else f"{function}("


def main():
    log = "\n".join(pathlib.Path(path).read_text(errors="replace") for path in sys.argv[1:])
    failed = False
    for line in (TESTS / "HostileTests" / "threats.txt").read_text().split("\n"):
        if line.startswith("#") or not line:
            continue
        if not line.startswith("    "):
            print(line)
            continue
        name = re.escape(shown_name(*line.strip().split(".")))
        if re.search(rf"✘ Test {name}.* failed", log):
            word, failed = "FAILED", True
        elif re.search(rf"✔ Test {name}.* passed", log):
            word = "passed"
        elif re.search(rf"Test {name}.* skipped", log):
            word = "skipped"
        else:
            word = "not run"
        print(f"  {word:8}{line.strip()}")
    print("\n".join(sorted(set(re.findall(r"^measured:.*$", log, re.MULTILINE)))))
    sys.exit(failed)


main()
