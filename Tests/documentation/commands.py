"""The commands that the documentation tells a person to type."""
import os
import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[2]
articles = root / "Sources/manual/Articles"
# What a command between backticks begins with; earshot's and earshotd's are held to their grammar by CommandTests.
programs = {"Config/install", "Config/uninstall", "Config/try", "curl", "earshot", "earshotd", "git", "journalctl", "nft", "sudo", "swift"}
programs |= {"systemctl", "systemd-analyze", "tar"}


def documents():
    """Everything that has commands."""
    return [root / "README.md", *sorted(articles.glob("*.md")), *sorted(root.glob("Sources/*/*.docc/*.md"))]


def blocks(text):
    """The lines of each block between backticks."""
    return [block.split("\n") for block in re.findall(r"^```[a-z]*\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)]


def typed(document):
    """The commands of a document's blocks, each as (who types it or None, the command, the lines that it prints)."""
    found = []
    for lines in blocks(document.read_text(encoding="utf-8")):
        own, continues = [], False
        for line in lines:
            start = re.fullmatch(r"(\w*)\$ (.*)", line)
            if continues:
                own[-1][1] += "\n" + line
            elif start:
                own.append([start[1] or None, start[2], []])
            elif own:
                own[-1][2].append(line)
            if own and (start or continues):
                continues = own[-1][1].endswith("\\")
        for who, command, output in own:
            # What stands behind it is for the reader; a shell passes over it too.
            found.append((who, re.sub(r"\s+# .*$", "", command), output))
    return found


def inline(document):
    """The commands between backticks in a document's sentences and tables."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    spans = [span for part in text.split("\n\n") for span in re.findall(r"`([^`]+)`", part.replace("\n", " ") if "|" not in part else part)]
    return [span for span in spans if (span.split()[0] in programs and " " in span) or is_script(span.split()[0])]


def is_script(word):
    """Whether this is a program of the repository that is typed by its path."""
    return word.startswith(("Tests/", "Config/")) and (root / word).is_file() and os.access(root / word, os.X_OK)
