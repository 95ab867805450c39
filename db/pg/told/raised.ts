// How often a node that writes has changed what others keep in memory: counted in a row of its own, in the transaction of each group, and for
// workspaces whose agents have written, in theirs. Anyone who keeps answers asks for it before it gives one out, and so never misses a group that
// was committed before. Pure.
import type { Pending } from "../../engine/pending.ts";
import type { Query } from "../../engine/sql.ts";
import { shownBy, touchedBy } from "../../engine/versions.ts";
import type { Sent } from "../bind.ts";
import { EVERY } from "../lease.ts";

const RAISE = `insert into versions (node, epoch, shown, callers, listed) values ($1, $2, $3, $4, $5)
  on conflict (node) do update set epoch = excluded.epoch, shown = versions.shown + excluded.shown,
    callers = versions.callers + excluded.callers, listed = versions.listed + excluded.listed`;

const RAISE_WORKSPACES = `with raised as (insert into workspace_versions (workspace_id, version) select unnest($6::text::text[]), 1
  on conflict (workspace_id) do update set version = workspace_versions.version + 1) ${RAISE}`;

/** Sent with a group that changes what lists show, or who a caller is; undefined for any other. */
export const raisedBy = (
  { node, epoch }: { readonly node: string; readonly epoch: number },
  group: readonly Pick<Pending, "batch" | "about">[],
): Sent | undefined => {
  const ids = new Set<string>();
  let [callers, listed] = [false, false];
  for (const { batch, about } of group) {
    const touched = touchedBy(batch);
    callers ||= touched.has("callers");
    const changed = shownBy(touched, about);
    if (changed === "all") listed = true;
    else if (changed) ids.add(changed.id);
  }
  const shown = listed || ids.size > 0;
  if (!shown && !callers) return undefined;
  const params = [node, epoch, Number(shown), Number(callers), Number(listed)];
  if (ids.size === 0) return { text: RAISE, params };
  // In one order, so that no two groups wait for each other in a ring.
  return { text: RAISE_WORKSPACES, params: [...params, `{${[...ids].sort()}}`] };
};

/** What was counted of each of these workspaces; nothing of one whose agents have written nothing yet. */
export const listCounts = (ids: readonly string[]): Query<{ readonly id: string; readonly version: string }> => ({
  sql: "select workspace_id, version from workspace_versions where workspace_id = any(cast(cast(? as text) as text[]))",
  params: [`{${ids}}`],
  map: ([id, version]) => ({ id: String(id), version: String(version) }),
});

/**
 * What the nodes that may write have counted, as one row. None where one of them counts nothing, such as one of a version before this, or has
 * counted nothing yet: then nothing can be kept. Where one node is active its epoch is the newest, unless it is of a version that has no fence; nodes
 * that are active together have one each, older than that of anyone who has joined and left since. With a node its counts leave, and `by` changes.
 */
export const RAISED = `select string_agg(f.node || ' ' || f.epoch, ',' order by f.node) as by,
    string_agg(v.shown::text, ',' order by f.node) as shown, string_agg(v.callers::text, ',' order by f.node) as callers,
    string_agg(v.listed::text, ',' order by f.node) as listed
  from fences f left join versions v on v.node = f.node and v.epoch = f.epoch
  having bool_and(v.node is not null)
    and (max(f.epoch) = (select value from epoch where id = 1) or (select node from lease where id = 1) = '${EVERY}')`;
