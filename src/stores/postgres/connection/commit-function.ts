/** With fewer commits, a tree is small enough to look at all its rows. */
const FEW_COMMITS = 50
/** How long several commits together wait for a lock. */
const LOCK_MS = 1_000

/**
 * Stores a commit. It locks the row of the tree first, so commits of one tree come one after the other. Then it checks versions. It
 * throws LG001 when a row is not at the version that the commit expects, and LG002 when there is no such tree. A statement may call
 * it for several trees, once `lock_1` has locked all of them.
 *
 * `p` has what is short, and only what there is: root, isNew, absent (ids that must not have been deleted), again, relaxed, id,
 * head (kind and time), kind, at, count (of events), seen, edges (that no new row brings), bodies (hash, place and length), engines,
 * dropEngines, dropBlocks, agent, owner, state and ordinal (of the root), types (of the change), spent. `p_short` is what is kept of `p_events`, which the hash is of.
 *
 * A commit reads the rows that it names, one by one, however many its tree has. The planner would join them with all rows of the tree:
 * it takes a tree for small, and a young table for empty. A plan that knows no tree finds a row by its whole key, and in a table that is
 * cut looks into one part. The keys of rows are of their tree, so ids of conversations and turns that
 * another tree has are refused here; those of nodes and links are derived from them. `trees.active`, the time of the last activity, is right where no turn of the root's lane is open; commits
 * of open ones leave it, because a column with an index makes each update write to all indexes.
 */
export const COMMIT = `
CREATE OR REPLACE FUNCTION @.commit_1(p jsonb, p_added json, p_changed json, p_events text, p_short text, p_marks text, p_bodies bytea) RETURNS bigint[] LANGUAGE plpgsql
  SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $legate$
DECLARE
  v_root bytea := (p ->> 'root')::bytea;
  v_tree bigint;
  v_n int;
  v_seq int;
  v_hash text;
  v_owner text;
  v_agent text;
  v_count int;
  v_row record;
  v_writes bigint;
  v_ordinal bigint := (p ->> 'ordinal')::bigint;
BEGIN
  IF p ? 'relaxed' THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  IF v_root IS NOT NULL THEN
    -- A transaction gets its number when it writes first. Changes of a tree are read by these numbers: a lock comes before.
    IF p ? 'types' THEN PERFORM pg_advisory_xact_lock(hashtextextended(p ->> 'root', 0)); END IF;
    IF p ? 'again' THEN
      SELECT t INTO v_tree FROM @.trees WHERE root_id = v_root FOR UPDATE;
      SELECT n, seq INTO v_n, v_seq FROM @.commits WHERE t = v_tree AND id = p ->> 'id';
      IF FOUND THEN RETURN ARRAY[v_tree, v_n, v_seq]; END IF;
    END IF;
    IF p ? 'isNew' THEN
      v_n := 1;
      v_seq := (p ->> 'count')::int;
      v_owner := p ->> 'owner';
      v_agent := p ->> 'agent';
      v_hash := @.chain_1('', (p ->> 'head') || ' ' || v_seq, p_marks, p_events);
      INSERT INTO @.trees (root_id, n, seq, hash, owner, agent, state, ordinal, active)
        VALUES (v_root, 1, v_seq, v_hash, v_owner, v_agent, coalesce(p ->> 'state', 'completed'), coalesce(v_ordinal, -1), (p ->> 'at')::float8)
        RETURNING t INTO v_tree;
    ELSE
      UPDATE @.trees SET n = n + 1, seq = seq + (p ->> 'count')::int,
        hash = @.chain_1(hash, (p ->> 'head') || ' ' || (seq + (p ->> 'count')::int), p_marks, p_events),
        agent = coalesce(p ->> 'agent', agent),
        state = CASE WHEN v_ordinal >= ordinal THEN p ->> 'state' ELSE state END,
        ordinal = greatest(ordinal, v_ordinal),
        active = CASE WHEN (p ->> 'count')::int > 0 AND CASE WHEN v_ordinal >= ordinal THEN p ->> 'state' ELSE state END <> 'open'
          THEN (p ->> 'at')::float8 ELSE active END
        WHERE root_id = v_root RETURNING t, n, seq, hash, owner, agent INTO v_tree, v_n, v_seq, v_hash, v_owner, v_agent;
      IF NOT FOUND THEN RAISE EXCEPTION 'no tree' USING ERRCODE = 'LG002'; END IF;
      -- It was deleted and made again, perhaps with as many commits.
      IF (p ->> 'tree')::bigint <> v_tree THEN RAISE EXCEPTION 'stale' USING ERRCODE = 'LG001'; END IF;
      -- Nothing else would notice that a commit without rows comes twice.
      IF p_added IS NULL AND p_changed IS NULL AND EXISTS (
        SELECT 1 FROM (SELECT id FROM @.commits WHERE t = v_tree ORDER BY seq DESC, n DESC LIMIT 100) c
          WHERE c.id = p ->> 'id') THEN
        RAISE EXCEPTION 'stored already' USING ERRCODE = 'LG001';
      END IF;
      -- Edges have no version: whoever adds one to nodes that were there must have seen the whole tree.
      IF (p ->> 'seen')::int <> v_n - 1 THEN RAISE EXCEPTION 'stale' USING ERRCODE = 'LG001'; END IF;
    END IF;
    IF p_added IS NOT NULL THEN
      FOR v_row IN WITH put AS (
        INSERT INTO @.rows (t, id, letter, version, n, seq, span, conversation_id, ordinal, edges, edges_n, edges_seq, queue, due, mark, wait, state, epoch, kind, key, data)
          SELECT v_tree, i, l, 1, v_n, v_seq, r.t, c, o, e, CASE WHEN e IS NOT NULL THEN v_n END, CASE WHEN e IS NOT NULL THEN v_seq END, q, d, m, w, s, r.p, k, y, x
          FROM json_to_recordset(p_added) AS r(i bytea, l "char", t bytea, c bytea, o int, e text, q text, d float8, m float8, w text, s "char", p int, k text, y text, x text)
          RETURNING id, letter, kind) SELECT * FROM put WHERE letter IN ('c', 't') LOOP
        -- A key names one run of the store, whoever gives it at the same moment.
        IF v_row.letter = 't' AND v_row.kind = 'user' THEN PERFORM pg_advisory_xact_lock(hashtextextended(encode(v_row.id, 'hex'), 1)); END IF;
        IF EXISTS (SELECT 1 FROM @.rows WHERE id = v_row.id AND letter = v_row.letter AND t <> v_tree) THEN
          RAISE EXCEPTION 'an id of another tree' USING ERRCODE = 'LG001';
        END IF;
      END LOOP;
    END IF;
    -- After its ids were free: a tree that had them and is deleted at this moment has left its tombstone then.
    IF p ? 'absent' AND EXISTS (
      SELECT 1 FROM @.stone_ids WHERE id IN (SELECT jsonb_array_elements_text(p -> 'absent'))) THEN
      RAISE EXCEPTION 'deleted' USING ERRCODE = 'LG001';
    END IF;
    IF p_changed IS NOT NULL THEN
      v_count := 0;
      FOR v_row IN SELECT * FROM json_to_recordset(p_changed) AS u(i bytea, l "char", v int, q text, d float8, m float8, w text, s "char", p int, k text, x text) LOOP
        UPDATE @.rows AS r SET version = v_row.v, n = v_n, seq = v_seq, queue = v_row.q, due = v_row.d, mark = v_row.m, wait = v_row.w,
          state = v_row.s, epoch = v_row.p, kind = v_row.k, data = v_row.x
          WHERE r.id = v_row.i AND r.letter = v_row.l AND r.t = v_tree AND r.version = v_row.v - 1;
        IF FOUND THEN v_count := v_count + 1; END IF;
      END LOOP;
      IF v_count <> json_array_length(p_changed) THEN RAISE EXCEPTION 'stale' USING ERRCODE = 'LG001'; END IF;
    END IF;
    IF p ? 'edges' THEN
      INSERT INTO @.rows (t, id, letter, version, n, seq, span, conversation_id, data)
        SELECT v_tree, @.edges_id_1(r.t, v_n), 'e', 1, v_n, v_seq, r.t, c, x FROM jsonb_to_recordset(p -> 'edges') AS r(t bytea, c bytea, x text);
    END IF;
    IF p ? 'bodies' THEN
      INSERT INTO @.bodies (t, hash, n, data)
        SELECT v_tree, h, v_n, substr(p_bodies, f, l) FROM jsonb_to_recordset(p -> 'bodies') AS r(h text, f int, l int)
        ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO @.commits (t, seq, n, id, kind, at, events, marks, hash, ids)
      VALUES (v_tree, v_seq, v_n, p ->> 'id', p ->> 'kind', (p ->> 'at')::float8, p_short, p_marks, v_hash,
        CASE WHEN v_n > ${FEW_COMMITS} THEN @.ids_1(p, p_added, p_changed, v_n) END);
    IF p ? 'types' THEN
      INSERT INTO @.changes (root_id, seq, owner, agent, at, types)
        VALUES (v_root, v_seq, v_owner, v_agent, (p ->> 'at')::float8, p ->> 'types');
    END IF;
    IF p ? 'spent' THEN
      INSERT INTO @.spent SELECT * FROM jsonb_to_recordset(p -> 'spent') AS r(owner text, day text, agent text, model text,
        runs bigint, model_calls bigint, input bigint, output bigint, cache_read bigint, cache_write bigint);
    END IF;
  END IF;
  IF p ? 'engines' THEN
    -- A lease whose answer was lost is there as it was sent.
    INSERT INTO @.engines AS e SELECT i, v, d FROM jsonb_to_recordset(p -> 'engines') AS r(i text, v int, d text)
      WHERE v = 1 OR EXISTS (SELECT 1 FROM @.engines k WHERE k.id = i)
      ON CONFLICT (id) DO UPDATE SET version = excluded.version, data = excluded.data
        WHERE e.version = excluded.version - 1
          OR p ? 'again' AND e.version = excluded.version AND e.data = excluded.data;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> jsonb_array_length(p -> 'engines') THEN RAISE EXCEPTION 'stale' USING ERRCODE = 'LG001'; END IF;
  END IF;
  IF p ? 'dropEngines' THEN
    DELETE FROM @.engines WHERE id IN (SELECT jsonb_array_elements_text(p -> 'dropEngines'));
  END IF;
  IF p ? 'dropBlocks' THEN
    DELETE FROM @.blocks WHERE node_id IN (SELECT jsonb_array_elements_text(p -> 'dropBlocks')::bytea);
  END IF;
  -- A lease is no news: whoever looks for lost ones reads all of them.
  IF v_root IS NOT NULL THEN v_writes := nextval('@.writes'); END IF;
  RETURN ARRAY[v_tree, v_n, v_seq];
END $legate$;

-- Locks the trees of several commits, before any of them is written. Somebody may hold one of them for long: then this fails soon,
-- and each commit is sent alone, so that only those of that tree wait.
CREATE OR REPLACE FUNCTION @.lock_1(p_roots text[]) RETURNS void LANGUAGE plpgsql AS $legate$
DECLARE
  v_root text;
BEGIN
  PERFORM set_config('lock_timeout', '${LOCK_MS}', true);
  FOREACH v_root IN ARRAY p_roots LOOP PERFORM pg_advisory_xact_lock(hashtextextended(v_root, 0)); END LOOP;
END $legate$;

CREATE OR REPLACE FUNCTION @.edges_id_1(p_span bytea, p_n int) RETURNS bytea LANGUAGE sql IMMUTABLE AS $legate$
  SELECT p_span || convert_to(' ' || p_n, 'UTF8')
$legate$;

-- Letter and id of each row that a commit writes.
CREATE OR REPLACE FUNCTION @.ids_1(p jsonb, p_added json, p_changed json, p_n int) RETURNS bytea[] LANGUAGE sql IMMUTABLE AS $legate$
  SELECT coalesce(array_agg(convert_to(l, 'UTF8') || i), '{}') FROM (
    SELECT i, l FROM json_to_recordset(coalesce(p_added, '[]')) AS r(i bytea, l text)
    UNION ALL SELECT i, l FROM json_to_recordset(coalesce(p_changed, '[]')) AS r(i bytea, l text)
    UNION ALL SELECT @.edges_id_1(t, p_n), 'e' FROM jsonb_to_recordset(coalesce(p -> 'edges', '[]')) AS r(t bytea)) x
$legate$;

-- The hash that a commit adds to the chain of its tree: see \`chainHash\`.
CREATE OR REPLACE FUNCTION @.chain_1(p_before text, p_head text, p_marks text, p_events text) RETURNS text LANGUAGE sql STABLE AS $legate$
  SELECT translate(rtrim(encode(sha256(convert_to(
    p_before || E'\\n' || p_head || E'\\n' || p_marks || E'\\n' || p_events, 'UTF8')), 'base64'), '='), '+/', '-_')
$legate$;
`
