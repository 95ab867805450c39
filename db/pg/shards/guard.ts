// Checks the ownership of shards in the database: each commit group starts with the check, and transfers wait for the groups that have
// passed it (docs/spec/cluster-nodes.md, stage 5).
import type { ReservedSQL } from "bun";
import type { BoundText } from "../bind.ts";

/**
 * Returns the first statement of a node's group: checks that the newest epoch is the node's, and that it owns all shards of the group's
 * batches.
 */
export const makeGuard =
  (node: string, epoch: number) =>
  (shards: readonly number[]): BoundText => ({
    text: "select own_epoch($1), own_parts($2, $1, $3::text::bigint[])",
    params: [epoch, node, `{${shards.join(",")}}`],
  });

/** Returns a new, higher epoch. Waits for groups that have checked the previous one. */
export const raiseEpoch = async (sql: ReservedSQL): Promise<number> => {
  const [{ value }] = await sql.unsafe(
    "insert into epoch (id, value) values (1, 1) on conflict (id) do update set value = epoch.value + 1 returning value",
  );
  return Number(value);
};

/** Assigns all shards to this node, which is then the only one that may write, and returns its epoch. Part of a transaction. */
export const takeAllShards = async (sql: ReservedSQL, node: string): Promise<number> => {
  // The updates are in the order in which a guard locks its rows. Each waits for a running group of the previous node.
  const value = await raiseEpoch(sql);
  await sql.unsafe("delete from leases");
  await sql.unsafe("delete from fences where node <> $1", [node]);
  await sql.unsafe(
    "insert into fences (node, epoch) values ($1, $2) on conflict (node) do update set epoch = excluded.epoch",
    [node, value],
  );
  await sql.unsafe("update parts set node = $1, epoch = $2", [node, value]);
  return value;
};

export const inTransaction = async <T>(sql: ReservedSQL, work: () => Promise<T>): Promise<T> => {
  await sql.unsafe("begin");
  try {
    const answer = await work();
    await sql.unsafe("commit");
    return answer;
  } catch (error) {
    await sql.unsafe("rollback").catch(() => {});
    throw error;
  }
};
