"""SSB and TPC-H at scale factor 0.1: equal rows, and which parts ran on Tandem."""

import pytest
from conftest import check, metric, queries, settings, tandem_nodes, views

# How many of our nodes the plan of each TPC-H query has, builds of files not counted, so that a change is seen.
TPCH_NODES = {
    "1": 1, "2": 5, "3": 1, "4": 1, "5": 1, "6": 1, "7": 1, "8": 1, "9": 1, "10": 1, "11": 1, "12": 1, "13": 1, "14": 1, "15": 2,
    "16": 2, "17": 2, "18": 3, "19": 1, "20": 3, "21": 1, "22": 2}


@pytest.mark.parametrize("path", queries("ssb"), ids=lambda path: path.stem)
def test_ssb(spark, path):
    views(spark, "ssb")
    for adaptive, build_bytes in [("true", "128m"), ("false", "128m"), ("true", "0")]:
        with settings(spark, {"spark.sql.adaptive.enabled": adaptive, "spark.tandem.buildBytes": build_bytes}):
            frame = check(spark, path.read_text().strip().rstrip(";"))
        nodes = tandem_nodes(frame)
        joins = {"1": 1, "2": 3, "3": 3, "4": 4}[path.stem[0]]
        # The fact table's pipeline, and one for each dimension that Spark broadcasts.
        broadcasts = joins if build_bytes == "0" else 0
        assert len(nodes) == 1 + broadcasts and metric(frame, "blocksSent") == broadcasts
        assert nodes[0].startswith("Tandem PartialAggregate") and nodes[0].count("Probe(inner)") == joins


@pytest.mark.parametrize("path", queries("tpch"), ids=lambda path: path.stem)
def test_tpch(spark, path):
    views(spark, "tpch")
    for statement in path.read_text().split(";"):
        if statement.strip().lower().startswith(("select", "with")):
            check(spark, statement, nodes=TPCH_NODES[path.stem])
        elif statement.strip():
            spark.sql(statement)
