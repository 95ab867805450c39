// How often a node that writes has changed what others keep in memory: counted in a row of its own, in the transaction of each group. Whoever keeps
// answers asks for it before it gives one out, and so never misses a group that was committed before. Pure.
import type { Statement } from "../../engine/sql.ts";
import { touchedBy } from "../../engine/versions.ts";
import type { Sent } from "../bind.ts";
import { EVERY } from "../lease.ts";

const RAISE = `insert into versions (node, epoch, shown, callers) values ($1, $2, $3, $4)
  on conflict (node) do update set epoch = excluded.epoch,
    shown = versions.shown + excluded.shown, callers = versions.callers + excluded.callers`;

/** Sent with a group that changes what lists show, or who a caller is; undefined for any other. */
export const raisedBy = (
  { node, epoch }: { readonly node: string; readonly epoch: number },
  batches: readonly (readonly Statement[])[],
): Sent | undefined => {
  const touched = touchedBy(batches.flat());
  const shown = touched.has("workspaces") || touched.has("agents");
  const callers = touched.has("callers");
  if (!shown && !callers) return undefined;
  return { text: RAISE, params: [node, epoch, Number(shown), Number(callers)] };
};

/**
 * What the nodes that may write have counted, as one row. None where one of them counts nothing, such as one of a version before this, or has
 * counted nothing yet: then nothing can be kept. Where one node is active its epoch is the newest, unless it is of a version that has no fence; nodes
 * that are active together have one each, older than that of whoever has joined and left since. With a node its counts leave, and `by` changes.
 */
export const RAISED = `select string_agg(f.node || ' ' || f.epoch, ',' order by f.node) as by,
    string_agg(v.shown::text, ',' order by f.node) as shown, string_agg(v.callers::text, ',' order by f.node) as callers
  from fences f left join versions v on v.node = f.node and v.epoch = f.epoch
  having bool_and(v.node is not null)
    and (max(f.epoch) = (select value from epoch where id = 1) or (select node from lease where id = 1) = '${EVERY}')`;
