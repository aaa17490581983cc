"""100,000 small files in one directory tree, against rsync -a to a daemon."""

import os
import shutil

from parts.files import Pair, rsync_daemon

COUNT = 100_000
SIZE = 1024


def make(root):
    for index in range(COUNT):
        directory = root / f"{index // 1000:03}" / f"{index // 100 % 10}"
        if index % 100 == 0:
            directory.mkdir(parents=True)
        (directory / f"file-{index}").write_bytes(os.urandom(SIZE))


def run(bench):
    tree = bench.place / "tree"
    tree.mkdir()
    make(tree)
    pair = Pair(bench, "tree", "none")
    target = bench.place / "rsync-in"
    target.mkdir()
    rsync = rsync_daemon(bench, target)

    def count(directory):
        return sum(len(files) for _, _, files in os.walk(directory))

    def checked(directory, work):
        shutil.rmtree(directory, ignore_errors=True)
        seconds = bench.timed(work)
        if count(directory) != COUNT:
            raise RuntimeError(f"{count(directory)} of {COUNT} files arrived")
        return COUNT / seconds

    try:
        bench.compare(
            "files/s",
            {
                "earshot": lambda: checked(
                    pair.directory / "tree", lambda: pair.alice.earshot("file", "send", pair.bob.name, tree)),
                "rsync -a": lambda: checked(
                    target / "tree", lambda: bench.alice.run(["rsync", "-a", tree, f"rsync://{bench.bob.address}:8730/in/"])),
            },
            [("earshot", "rsync -a", 0.5, 1)],
        )
    finally:
        rsync.terminate()
        rsync.wait()
        bench.end()
        shutil.rmtree(tree)
