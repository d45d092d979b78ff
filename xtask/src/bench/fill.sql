PRAGMA synchronous = OFF;
PRAGMA foreign_keys = OFF;
BEGIN;
CREATE TEMP TABLE copy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < MACHINES * NIGHTS - 1)
    SELECT i + 1 AS run, i / NIGHTS + 1 AS machine, (i % NIGHTS) * 86400000 AS later FROM n;
WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < MACHINES)
    INSERT INTO machine SELECT i, identity || i, 'board-' || (i - 1) || '.', model, cpu_model, architecture,
    hypervisor FROM n, machine WHERE id = 1;
INSERT INTO run SELECT c.run, identity || c.run, c.machine, configuration_id, started_unix_ms + c.later, title,
    path, tool, measurements, planned, added_unix_ms FROM copy c, run r WHERE r.id = 1;
INSERT INTO measurement SELECT c.run, cell_index, cell_id, c.machine, started_unix_ms + c.later, again,
    kernel_release, blocks, measured_ns, samples, missed, lost, min_ns, mean_ns, p50_ns, p99_ns, p99_low_ns,
    p99_high_ns, p999_ns, max_ns, max_at_least, typical_p99_ns * (1 + 0.2 * (random() / 1.9e19)),
    typical_max_ns * (1 + 0.2 * (random() / 1.9e19)) FROM copy c, measurement m WHERE m.run_id = 1;
INSERT INTO block SELECT c.run, cell_index, block, started_unix_ms + c.later, samples, p99_ns, max_ns
    FROM copy c, block b WHERE b.run_id = 1;
INSERT INTO histogram SELECT c.run, cell_index, counts FROM copy c, histogram h WHERE h.run_id = 1;
INSERT INTO finding SELECT c.run, number, cell_index, kind, importance, sentence
    FROM copy c, finding f WHERE f.run_id = 1;
COMMIT;
