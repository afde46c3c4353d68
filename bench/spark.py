"""Measures plain Spark against Spark with Tandem, from the same Parquet files in one run; called by

    tandem bench spark --suite ssb --sf 10 [--cluster] [--json FILE]

Plain Spark first, in a process without the plugin. For every query: the best of `--runs` after one more; with Tandem on a daemon just
started ("started": its memory is new to the machine, too), with a cold column cache ("cold": the daemon has given up all columns, as on
SIGUSR1), and warm. Rows must be equal. Also: what the plugin adds to a trivial query.
"""

import argparse
import json
import os
import platform
import signal
import socket as socketlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from cluster import Cluster


class Node:
    """A daemon that can be started afresh."""

    def __init__(self, command, socket):
        self.command, self.socket, self.process = command, socket, None
        with socketlib.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.metrics = f"127.0.0.1:{free.getsockname()[1]}"

    def restart(self):
        self.stop()
        self.process = subprocess.Popen(
            [*self.command, "--socket", self.socket, "--metrics", self.metrics, "--with-parent", "--log", "error"],
            stdin=subprocess.PIPE, env={"MIMALLOC_PURGE_DELAY": "10000", **os.environ})  # as the plugin starts it
        while not os.path.exists(self.socket):
            if self.process.poll() is not None:
                sys.exit("error: the daemon ended at once")
            time.sleep(0.01)

    def forget(self):
        """Empties the column cache, and sees that it is."""
        self.process.send_signal(signal.SIGUSR1)
        for _ in range(1000):
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as answer:
                if b"\ntandem_cache_bytes 0\n" in answer.read():
                    return
            time.sleep(0.01)
        sys.exit("error: the daemon keeps its columns")

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
    parser.add_argument("--plain", metavar="MASTER", help="only plain Spark; used by the program itself")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="tandem-bench-", ignore_cleanup_errors=True) as directory:
        if arguments.plain:
            arguments.master = arguments.plain
            plain(arguments, directory)
        else:
            compare(arguments, directory)


def compare(arguments, directory):
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


def session(arguments, directory, **settings):
    builder = (
        SparkSession.builder.master(arguments.master).appName("tandem-bench")
        .config("spark.driver.memory", arguments.memory).config("spark.executor.memory", arguments.memory)
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", directory).config("spark.sql.warehouse.dir", directory + "/warehouse")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for file in sorted(Path(arguments.data).glob("*.parquet")):
        spark.read.parquet(str(file.resolve())).createOrReplaceTempView(file.stem)
    return spark


def queries(arguments):
    files = sorted(Path(arguments.queries).glob("*.sql"), key=lambda path: [int(x) for x in path.stem.split(".")])
    return {path.stem: path.read_text() for path in files}


def plain(arguments, directory):
    """Measures Spark without the plugin; what it took and its rows, as text, go to standard output, for the process that asked."""
    spark = session(arguments, directory)
    for name, sql in queries(arguments).items():
        rows = measure(spark, sql)[1]
        best = min(measure(spark, sql)[0] for _ in range(arguments.runs))
        print(json.dumps([name, best, sorted(map(repr, rows))]), flush=True)
    spark.stop()


def run(arguments, node, directory):
    child = subprocess.Popen([sys.executable, *sys.argv, "--plain", arguments.master], stdout=subprocess.PIPE, text=True)
    of_plain = {}
    for line in child.stdout:
        name, best, rows = json.loads(line)
        of_plain[name] = best, rows
        print(f"plain Spark, query {name}: {best:.0f} ms", file=sys.stderr)
    if child.wait():
        sys.exit("error: plain Spark failed")

    jar = os.path.abspath(arguments.jar)
    spark = session(
        arguments, directory, spark__plugins="io.tandem.spark.TandemPlugin", spark__jars=jar,
        spark__driver__extraClassPath=jar, spark__tandem__socket=node.socket, spark__tandem__onFallback="silent")
    results = []
    kinds = ("started", "cold", "warm")
    print(f"{'query':>6} {'plain':>8}" + "".join(f" {kind:>8}" for kind in kinds)
          + "".join(f" {kind + ' ×':>9}" for kind in kinds) + "  (ms)")
    for name, sql in queries(arguments).items():
        best, want = of_plain[name]
        node.restart()
        measure(spark, sql)  # as plain Spark's first run: classes are loaded
        result = {"query": name, "plain_ms": best}
        for kind, prepare in zip(kinds, (node.restart, node.forget, lambda: None)):
            times = []
            for _ in range(arguments.runs):
                prepare()
                measure(spark, "select 1")  # nothing of ours; connections of the last daemon are found dead by the first command
                took, rows, frame = measure(spark, sql)
                times.append(took)
                if want != sorted(map(repr, rows)):
                    sys.exit(f"error: query {name} has other rows with Tandem")
            result[f"{kind}_ms"] = min(times)
        result["nodes"] = nodes(frame)
        if not result["nodes"]:
            print(f"{name:>6} nothing ran on Tandem")
        results.append(result)
        print(table_row(name, result, kinds), flush=True)
    total = {key: sum(result[key] for result in results) for key in ("plain_ms", *(f"{kind}_ms" for kind in kinds))}
    print(table_row("all", total, kinds))
    overhead = trivial(spark, directory)
    print(f"trivial queries: {', '.join(f'{name} {ms:+.1f} ms' for name, ms in overhead.items())}")
    if arguments.json:
        report = {
            "suite": arguments.suite, "sf": arguments.sf, "spark": spark_version, "master": arguments.master.split(":")[0],
            "cores": os.cpu_count(), "machine": platform.machine(), "runs": arguments.runs, "queries": results,
            "total": total, "trivial_overhead_ms": overhead}
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    spark.stop()


def table_row(name, result, kinds):
    plain, times = result["plain_ms"], [result[f"{kind}_ms"] for kind in kinds]
    return (f"{name:>6} {plain:8.0f}" + "".join(f" {time:8.0f}" for time in times)
            + "".join(f" {plain / time:9.1f}" for time in times))


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
