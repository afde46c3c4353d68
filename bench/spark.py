"""Measures plain Spark against Spark with Tandem, from the same Parquet files in one run; called by

    tandem bench spark --suite ssb --sf 10 [--cluster] [--json FILE]

For every query: plain Spark, best of `--runs` after one more; Tandem with a cold column cache, best of `--runs`, each on a daemon
just started; Tandem warm, best of `--runs` after these. Rows must be equal. Also: what the plugin adds to a trivial query.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from cluster import Cluster


class Node:
    """A daemon that can be started afresh."""

    def __init__(self, command, socket):
        self.command, self.socket, self.process = command, socket, None

    def restart(self):
        self.stop()
        self.process = subprocess.Popen(
            [*self.command, "--socket", self.socket, "--with-parent", "--log", "error"], stdin=subprocess.PIPE)
        while not os.path.exists(self.socket):
            time.sleep(0.01)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        if os.path.exists(self.socket):
            os.remove(self.socket)


def measure(spark, sql):
    started = time.perf_counter()
    frame = spark.sql(sql)
    rows = frame.collect()
    return 1000 * (time.perf_counter() - started), rows, frame


def nodes(frame):
    return frame._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0].count("Tandem ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="ssb", choices=["ssb", "tpch"])
    parser.add_argument("--sf", type=float, help="scale factor of the data, for the table's head")
    parser.add_argument("--data", required=True, help="directory of the Parquet files")
    parser.add_argument("--jar", required=True, help="the plugin")
    parser.add_argument("--node", required=True, nargs="+", help="the daemon's command")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--cluster", action="store_true", help="two workers on loopback instead of --master")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", required=True, help="directory of the queries")
    parser.add_argument("--memory", default="4g", help="of the driver, or of each executor")
    parser.add_argument("--json", help="where the figures go")
    arguments = parser.parse_args()

    directory = tempfile.mkdtemp(prefix="tandem-bench-")
    node = Node(arguments.node, directory + "/node.sock")
    cluster = None
    try:
        if arguments.cluster:
            cluster = Cluster(directory, worker_memory=arguments.memory)
            arguments.master = cluster.url
        run(arguments, node, directory)
    finally:
        node.stop()
        if cluster:
            cluster.stop()


def run(arguments, node, directory):
    jar = os.path.abspath(arguments.jar)
    spark = (
        SparkSession.builder.master(arguments.master).appName("tandem-bench")
        .config("spark.plugins", "io.tandem.spark.TandemPlugin").config("spark.jars", jar)
        .config("spark.driver.extraClassPath", jar).config("spark.driver.memory", arguments.memory)
        .config("spark.executor.memory", arguments.memory).config("spark.tandem.socket", node.socket)
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false").config("spark.tandem.onFallback", "silent")
        .config("spark.sql.warehouse.dir", directory + "/warehouse").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for file in sorted(Path(arguments.data).glob("*.parquet")):
        spark.read.parquet(str(file.resolve())).createOrReplaceTempView(file.stem)
    files = sorted(Path(arguments.queries).glob("*.sql"), key=lambda path: [int(x) for x in path.stem.split(".")])
    results = []
    print(f"{'query':>6} {'plain':>8} {'cold':>8} {'warm':>8} {'cold ×':>7} {'warm ×':>7}  (ms)")
    for path in files:
        sql = path.read_text().strip().rstrip(";")
        spark.conf.set("spark.tandem.enabled", "false")
        _, want, _ = measure(spark, sql)
        plain = min(measure(spark, sql)[0] for _ in range(arguments.runs))
        spark.conf.set("spark.tandem.enabled", "true")
        cold = []
        for _ in range(arguments.runs):
            node.restart()
            measure(spark, "select 1")  # nothing of ours; connections of the last daemon are found dead by the first command
            cold.append(measure(spark, sql)[0])
        warm = []
        for _ in range(arguments.runs):
            took, rows, frame = measure(spark, sql)
            warm.append(took)
        if sorted(map(repr, want)) != sorted(map(repr, rows)):
            sys.exit(f"error: query {path.stem} has other rows with Tandem")
        if not nodes(frame):
            print(f"{path.stem:>6} nothing ran on Tandem")
        result = {"query": path.stem, "plain_ms": plain, "cold_ms": min(cold), "warm_ms": min(warm), "nodes": nodes(frame)}
        results.append(result)
        print(f"{path.stem:>6} {plain:8.0f} {min(cold):8.0f} {min(warm):8.0f} {plain / min(cold):7.1f} {plain / min(warm):7.1f}", flush=True)
    total = {key: sum(result[key] for result in results) for key in ("plain_ms", "cold_ms", "warm_ms")}
    print(f"{'all':>6} {total['plain_ms']:8.0f} {total['cold_ms']:8.0f} {total['warm_ms']:8.0f} "
          f"{total['plain_ms'] / total['cold_ms']:7.1f} {total['plain_ms'] / total['warm_ms']:7.1f}")
    overhead = trivial(spark, directory)
    print(f"trivial queries: {', '.join(f'{name} {ms:+.1f} ms' for name, ms in overhead.items())}")
    if arguments.json:
        report = {
            "suite": arguments.suite, "sf": arguments.sf, "spark": spark_version, "master": arguments.master.split(":")[0],
            "cores": os.cpu_count(), "machine": platform.machine(), "runs": arguments.runs, "queries": results,
            "total": total, "trivial_overhead_ms": overhead}
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    spark.stop()


def trivial(spark, directory):
    """Returns what the plugin adds to queries that have nothing to compute: medians of twenty runs, in turns."""
    spark.sql("select 1 id").coalesce(1).write.parquet(directory + "/one")
    spark.read.parquet(directory + "/one").createOrReplaceTempView("one")
    overhead = {}
    for name, sql in {"select 1": "select 1", "one row": "select sum(id) from one where id > 0"}.items():
        times = {"true": [], "false": []}
        for _ in range(23):
            for enabled, taken in times.items():
                spark.conf.set("spark.tandem.enabled", enabled)
                taken.append(measure(spark, sql)[0])
        overhead[name] = statistics.median(times["true"][3:]) - statistics.median(times["false"][3:])
    return overhead


if __name__ == "__main__":
    main()
