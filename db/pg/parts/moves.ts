// How parts change hands among nodes that are active at the same time (docs/cluster-nodes.md, stage 5). No node calls this yet: what sends
// requests to the owner of a part is not built.
import type { ReservedSQL } from "bun";
import type { Sent } from "../bind.ts";
import { type Move, movesOf } from "./assignment.ts";
import { inTransaction, raiseEpoch } from "./guard.ts";

/** Held while parts are given out, so that of several nodes that see one die one does it. */
const LOCK = 5_710_321_978;

/** What a group begins with where several nodes are active: no epoch is the newest of all. */
export const partsGuardOf =
  (node: string, epoch: number) =>
  (parts: readonly number[]): Sent => ({
    text: "select own_parts($1, $2, $3::text::bigint[])",
    params: [node, epoch, `{${parts.join(",")}}`],
  });

/** The node lives from now on, by this epoch, and has no part yet. A process of its name before it writes nothing more, nor does one that was alone. */
export const joinParts = (sql: ReservedSQL, node: string, lease_ms: number): Promise<number> =>
  inTransaction(sql, async () => {
    const value = await raiseEpoch(sql);
    // Leases before fences before parts, as whoever takes over does.
    await sql.unsafe(
      `insert into leases (node, expires_at) values ($1, clock_timestamp() + $2 * interval '1 ms')
       on conflict (node) do update set expires_at = excluded.expires_at`,
      [node, lease_ms],
    );
    await sql.unsafe(
      "insert into fences (node, epoch) values ($1, $2) on conflict (node) do update set epoch = excluded.epoch",
      [node, value],
    );
    await sql.unsafe("update parts set node = '', epoch = 0 where node = $1", [node]);
    return value;
  });

/** False: the node's parts have been given to others, or another process has its name. */
export const renewParts = async (sql: ReservedSQL, node: string, epoch: number, lease_ms: number): Promise<boolean> => {
  const rows = await sql.unsafe(
    `update leases set expires_at = clock_timestamp() + $3 * interval '1 ms'
     where node = $1 and exists (select 1 from fences where fences.node = $1 and fences.epoch = $2) returning 1`,
    [node, epoch, lease_ms],
  );
  return rows.length === 1;
};

/**
 * Fences every node whose lease has ended and gives its parts, and those that nobody has, to those who live. Waits for groups that such a node
 * has under way. Answers what has moved.
 */
export const takeOver = (sql: ReservedSQL, lease_ms: number): Promise<Move[]> =>
  inTransaction(sql, async () => {
    await sql.unsafe(`select pg_advisory_xact_lock(${LOCK})`);
    // A renewal that comes meanwhile waits, and finds nothing: its node ends.
    const ended = await sql.unsafe("delete from leases where expires_at <= clock_timestamp() returning node");
    for (const { node } of ended) await sql.unsafe("delete from fences where node = $1", [node]);
    const { moves, living } = await planned(sql, lease_ms);
    // Whoever lives hands over by itself what it has.
    const taken = moves.filter(({ part }) => !living.has(part));
    for (const { part, to } of taken) await give(sql, part, to);
    return taken;
  });

/** What should move now that all nodes live: each owner hands its own over. */
export const plannedMoves = async (sql: ReservedSQL, lease_ms: number): Promise<Move[]> =>
  (await planned(sql, lease_ms)).moves;

const planned = async (
  sql: ReservedSQL,
  lease_ms: number,
): Promise<{ readonly moves: Move[]; readonly living: ReadonlySet<number> }> => {
  const rows: { part: string; node: string; lives: boolean; is_new: boolean }[] = await sql.unsafe(
    `select part, node, node in (select l.node from leases l) as lives, given_at > clock_timestamp() - $1 * interval '1 ms' as is_new
     from parts order by part`,
    [lease_ms],
  );
  const nodes: { node: string }[] = await sql.unsafe("select node from leases where expires_at > clock_timestamp()");
  const moves = movesOf(
    rows.map(({ node, is_new }) => ({ node, isNew: is_new })),
    nodes.map(({ node }) => node),
  );
  return { moves, living: new Set(rows.filter(({ lives }) => lives).map(({ part }) => Number(part))) };
};

const give = (sql: ReservedSQL, part: number, to: string): Promise<unknown> =>
  sql.unsafe(
    "update parts set node = $2, epoch = fences.epoch, given_at = clock_timestamp() from fences where part = $1 and fences.node = $2",
    [part, to],
  );

/**
 * The node gives one of its parts to another that lives, once it has nothing more to write for it. Waits for a group of it that is under way;
 * false where it had no such part, or the other one is gone.
 */
export const handOver = async (
  sql: ReservedSQL,
  { node, epoch }: { readonly node: string; readonly epoch: number },
  { part, to }: Move,
): Promise<boolean> => {
  const rows = await sql.unsafe(
    `update parts set node = $4, epoch = fences.epoch, given_at = clock_timestamp() from fences, leases
     where part = $3 and parts.node = $1 and parts.epoch = $2
       and fences.node = $4 and leases.node = $4 and leases.expires_at > clock_timestamp() returning 1`,
    [node, epoch, part, to],
  );
  return rows.length === 1;
};
