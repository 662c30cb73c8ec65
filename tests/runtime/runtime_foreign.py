"""A program of the same user with a Ray instance of its own: answers "ok" to each line while its actor answers."""

from __future__ import annotations

import os
import sys

os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, _temp_dir=sys.argv[1])


@ray.remote(num_cpus=0)
class Counter:
    def __init__(self) -> None:
        self.value = 0

    def add(self) -> int:
        self.value += 1
        return self.value


counter = Counter.remote()
print(ray.get(counter.add.remote()), flush=True)
for _ in sys.stdin:
    print(ray.get(counter.add.remote(), timeout=10), flush=True)
ray.shutdown()
