"""Compares three schedulers for four virtual machines beside a scrub, at two depths of the drive's queue."""

import headtime

report = headtime.run(settings={"engine.depth": [1, 32], "engine.gate": "depth", "run.duration": "20s"})
print(report)

# The same as a table, a row for each program: who pays for the scrub?
groups = report.groups
print("run  group  depth  scheduler         IOPS  p99 ms")
for row in zip(*(groups[name] for name in ("run", "group", "depth", "scheduler", "iops", "response_p99_ms"))):
    print("{:3}  {:5}  {:5}  {:16} {:5.0f}  {:6.0f}".format(*row))
