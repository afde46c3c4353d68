"""SSB and TPC-H at scale factor 0.1: equal rows, and which parts ran on Tandem."""

import pytest
from conftest import check, metric, queries, settings, tandem_nodes, views

# Scans that Tandem does not take in each TPC-H query's plan are listed by number of our nodes, so that a change is seen.


@pytest.mark.parametrize("path", queries("ssb"), ids=lambda path: path.stem)
def test_ssb(spark, path):
    views(spark, "ssb")
    for adaptive, build_bytes in [("true", "128m"), ("false", "128m"), ("true", "0")]:
        with settings(spark, {"spark.sql.adaptive.enabled": adaptive, "spark.tandem.buildBytes": build_bytes}):
            frame = check(spark, path.read_text().strip().rstrip(";"))
        nodes = tandem_nodes(frame)
        joins = {"1": 1, "2": 3, "3": 3, "4": 4}[path.stem[0]]
        # The fact table's pipeline, and one for each dimension that Spark broadcasts.
        assert len(nodes) == 1 + (joins if build_bytes == "0" else 0)
        assert metric(frame, "blocksSent") >= (joins if build_bytes == "0" else 0)
        assert nodes[0].startswith("Tandem PartialAggregate") and nodes[0].count("Probe(inner)") == joins


@pytest.mark.parametrize("path", queries("tpch"), ids=lambda path: path.stem)
def test_tpch(spark, path):
    views(spark, "tpch")
    for statement in path.read_text().split(";"):
        if statement.strip().lower().startswith(("select", "with")):
            check(spark, statement)
        elif statement.strip():
            spark.sql(statement)
