"""The worker of `tandem bench`: holds one engine and answers requests, one JSON object per line.

    {"op": "hello"}                                             -> {"version": ...}
    {"op": "load", "tables": {name: {"path", "columns"}},
     "from": "memory" | "parquet", "threads": n, "scratch": dir} -> {"seconds": ...}
    {"op": "run", "query": name, "sql": text}                   -> {"seconds": ..., "rows": [[text or null, ...], ...]}

An answer has "error" instead where the engine failed. Time is measured here, around executing a query and fetching its result;
turning the result into text is not part of it. Each engine is a module with `version()` and a class `Engine(request)`
with `run(sql)`, which returns the engine's result, `rows(result)`, which returns tuples, and perhaps `close()`.
"""

import importlib
import json
import os
import sys
import time
from decimal import Decimal


def text(value):
    """Writes a value the same way for every engine."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "to_date"):
        value = value.to_date()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def answer(state, request):
    """Does what a request asks for."""
    module = state["module"]
    if request["op"] == "hello":
        return {"version": module.version()}
    if request["op"] == "load":
        start = time.perf_counter()
        state["engine"] = module.Engine(request)
        return {"seconds": time.perf_counter() - start}
    engine = state["engine"]
    start = time.perf_counter()
    result = engine.run(request["sql"])
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": [[text(value) for value in row] for row in engine.rows(result)]}


def main():
    # Engines may print to standard output; keep it for answers alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Read by the engine when it is imported.
    os.environ["POLARS_MAX_THREADS"] = sys.argv[2]
    state = {}
    for line in sys.stdin:
        try:
            if "module" not in state:
                state["module"] = importlib.import_module("engine_" + sys.argv[1])
            reply = answer(state, json.loads(line))
        except Exception as error:  # one failing query must not end the run
            lines = str(error).strip().splitlines()
            reply = {"error": f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"[:300]}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
    if hasattr(state.get("engine"), "close"):
        state["engine"].close()


if __name__ == "__main__":
    main()
