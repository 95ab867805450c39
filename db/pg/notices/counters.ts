// Counters of a writing node's changes to data that others cache. The transaction of each commit group updates the node's counters, and
// those of the workspaces whose agents have written. Readers check the counters before they use a cached answer, so they never miss a group
// that was committed before. Pure.
import type { Pending } from "../../engine/pending.ts";
import type { Query } from "../../engine/sql.ts";
import { collectTouches, findShownChange } from "../../engine/versions.ts";
import type { BoundText } from "../bind.ts";
import { ALL_NODES } from "../lease.ts";

const UPSERT_COUNTERS = `insert into versions (node, epoch, shown, callers, listed) values ($1, $2, $3, $4, $5)
  on conflict (node) do update set epoch = excluded.epoch, shown = versions.shown + excluded.shown,
    callers = versions.callers + excluded.callers, listed = versions.listed + excluded.listed`;

const UPSERT_COUNTERS_AND_WORKSPACES = `with raised as (insert into workspace_versions (workspace_id, version) select unnest($6::text::text[]), 1
  on conflict (workspace_id) do update set version = workspace_versions.version + 1) ${UPSERT_COUNTERS}`;

/** Returns the statement to send with a group that changes data in lists, or the identity of callers; undefined for other groups. */
export const toCounterUpdate = (
  { node, epoch }: { readonly node: string; readonly epoch: number },
  group: readonly Pick<Pending, "batch" | "about">[],
): BoundText | undefined => {
  const ids = new Set<string>();
  let [callers, listed] = [false, false];
  for (const { batch, about } of group) {
    const touched = collectTouches(batch);
    callers ||= touched.has("callers");
    const changed = findShownChange(touched, about);
    if (changed === "all") listed = true;
    else if (changed) ids.add(changed.id);
  }
  const shown = listed || ids.size > 0;
  if (!shown && !callers) return undefined;
  const params = [node, epoch, Number(shown), Number(callers), Number(listed)];
  if (ids.size === 0) return { text: UPSERT_COUNTERS, params };
  // Sorted, so that groups cannot deadlock.
  return { text: UPSERT_COUNTERS_AND_WORKSPACES, params: [...params, `{${[...ids].sort()}}`] };
};

/** Returns the counters of these workspaces. A workspace whose agents have never written has no counter. */
export const listCounts = (ids: readonly string[]): Query<{ readonly id: string; readonly version: string }> => ({
  sql: "select workspace_id, version from workspace_versions where workspace_id = any(cast(cast(? as text) as text[]))",
  params: [`{${ids}}`],
  map: ([id, version]) => ({ id: String(id), version: String(version) }),
});

/**
 * Reads the counters of all nodes that may write, as one row. Returns no row if a node does not count (for example, a node of an earlier
 * version) or has not counted yet. Then nothing can be cached. With a single active node, its epoch is the newest, unless its version has
 * no fence. With several, each has its own epoch, older than that of any node that has joined and left since. When a node leaves, its
 * counters disappear and `by` changes.
 */
export const SELECT_COUNTERS = `select string_agg(f.node || ' ' || f.epoch, ',' order by f.node) as by,
    string_agg(v.shown::text, ',' order by f.node) as shown, string_agg(v.callers::text, ',' order by f.node) as callers,
    string_agg(v.listed::text, ',' order by f.node) as listed
  from fences f left join versions v on v.node = f.node and v.epoch = f.epoch
  having bool_and(v.node is not null)
    and (max(f.epoch) = (select value from epoch where id = 1) or (select node from lease where id = 1) = '${ALL_NODES}')`;
