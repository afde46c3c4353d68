-- The tables of the target sql: those of tests/sql, with at most a hundred rows, so that seeds made of its queries run.
CREATE TABLE people AS SELECT * FROM (VALUES
  (1, 'ada', 36, 'london', 1815.5, DATE '1815-12-10', true),
  (2, 'grace', 85, 'new york', 1906.25, DATE '1906-12-09', true),
  (3, 'alan', 41, 'london', NULL, DATE '1912-06-23', false),
  (4, 'edsger', 72, 'rotterdam', -0.5, DATE '1930-05-11', NULL),
  (5, NULL, NULL, NULL, 0.0, NULL, NULL),
  (7, '', 0, '', 2.5, DATE '1970-01-01', false)
) AS t(id, name, age, city, score, born, alive);
CREATE TABLE numbers AS SELECT value AS n, value % 7 AS m7, value % 1000 AS m1000,
  CASE WHEN value % 11 = 0 THEN NULL ELSE value % 13 END AS maybe,
  CAST(value % 5 AS VARCHAR) AS text5 FROM generate_series(0, 99) AS g(value);
CREATE TABLE c AS SELECT * FROM (VALUES (1, '10', 1.5), (2, 'x', -2.5), (3, NULL, NULL), (300, '-7', 1e20)) AS t(i, s, f);
CREATE TABLE days AS SELECT DATE '2023-12-28' + CAST(value AS INT) AS d, value AS n FROM generate_series(0, 70) AS g(value);
CREATE TABLE stamps AS SELECT arrow_cast((1709161200 + value * 2220) * 1000000, 'Timestamp(Microsecond, None)') AS t, value AS n
  FROM generate_series(0, 40) AS g(value);
CREATE TABLE d AS SELECT id, CAST(amount AS DECIMAL(15, 2)) AS amount, CAST(rate AS DECIMAL(4, 2)) AS rate,
  CAST(amount AS DECIMAL(38, 10)) AS wide
  FROM (VALUES (1, 10.25, 0.05), (2, 99999999.99, 0.10), (3, -0.01, 0.00), (4, NULL, 0.07), (5, 0.00, NULL)) AS t(id, amount, rate);
CREATE TABLE e (i BIGINT, s VARCHAR, f DOUBLE, d DATE, n DECIMAL(10, 2), b BOOLEAN);
CREATE TABLE f AS SELECT * FROM (VALUES (1, 1.5), (2, CAST('NaN' AS DOUBLE)), (3, CAST('Infinity' AS DOUBLE)),
  (4, CAST('-Infinity' AS DOUBLE)), (5, 0.0), (6, CAST('-0.0' AS DOUBLE)), (7, NULL), (8, 1e-300), (10, 1e308)) AS t(id, x);
CREATE TABLE l AS SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', 20), (2, 'bb', 21), (3, 'c', 30), (NULL, 'n', 0), (5, NULL, 50)) AS t(k, v, w);
CREATE TABLE r AS SELECT * FROM (VALUES (1, 'A', 10), (2, 'B', 20), (2, 'BB', 99), (4, 'D', 40), (NULL, 'N', 0), (5, 'E', NULL)) AS t(k, v, w);
CREATE TABLE none AS SELECT * FROM l WHERE false;
CREATE TABLE patterns AS SELECT * FROM (VALUES (1, 'abc'), (4, ''), (5, NULL), (6, 'ABC'), (7, 'a%c'), (8, 'a_c'), (9, 'a\c'), (10, 'äbc')) AS t(id, s);
CREATE TABLE truth AS SELECT a, b FROM (VALUES (true), (false), (NULL)) AS x(a) CROSS JOIN (VALUES (true), (false), (NULL)) AS y(b);
CREATE TABLE holes AS SELECT * FROM (VALUES (1, 10, 'x'), (2, NULL, 'y'), (NULL, 30, NULL), (NULL, NULL, 'z'), (5, 50, NULL)) AS t(a, b, s);
CREATE TABLE edge AS SELECT * FROM (VALUES (9223372036854775807, 1, 0), (-9223372036854775808, -1, 0), (0, 0, 1)) AS t(big, small, zero);
CREATE TABLE ints AS SELECT arrow_cast(value, 'Int32') AS i FROM generate_series(2147483600, 2147483647) AS g(value);
CREATE TABLE words AS SELECT * FROM (VALUES (1, 'Hello'), (2, ''), (3, NULL), (4, '  spaced  '), (5, 'naïve café'), (6, '日本語')) AS t(id, w);
CREATE TABLE fact AS SELECT value AS id, value % 97 AS d1, (value * 7) % 53 AS d2, value % 50 AS quantity, value * 3 AS price,
  CASE WHEN value % 29 = 0 THEN NULL ELSE value % 10 END AS discount FROM generate_series(0, 99) AS g(value);
CREATE TABLE dim1 AS SELECT value AS k, 'region ' || (value % 5) AS region, 'nation ' || (value % 25) AS nation FROM generate_series(0, 90) AS g(value);
CREATE TABLE dim2 AS SELECT value AS k, 'category ' || (value % 6) AS category, value % 20 AS brand FROM generate_series(0, 52) AS g(value);
