"""DuckDB as an oracle: answers the statements of a case, a line of JSON for each line of JSON.

    {"setup": [sql, …], "statements": [sql, …]}  ->  [{"rows": [[text or null, …], …]} or {"error": text}, …]

A case has a database of its own. Values are spelled so that `spelling.rs` can compare them.
"""

import datetime
import json
import sys
import threading
from decimal import Decimal

import duckdb

# A statement that takes longer is interrupted.
PATIENCE = 30


def spell(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def run(connection, sql):
    timer = threading.Timer(PATIENCE, connection.interrupt)
    timer.start()
    try:
        rows = connection.execute(sql).fetchall()
    except Exception as error:  # every statement is answered
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        timer.cancel()
    return {"rows": [[spell(value) for value in row] for row in rows]}


def answer(case):
    # One thread: a case is small, and others run beside it.
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for sql in case["setup"]:
        connection.execute(sql)
    answers = [run(connection, sql) for sql in case["statements"]]
    connection.close()
    return answers


def main():
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
