"""The parts of the benchmark, in the order in which they run."""

import importlib

PARTS = {
    name: importlib.import_module(f"parts.{name}")
    for name in ("files", "trees", "streams", "messages", "library", "latency", "durable", "memory", "scale", "groups")
}
