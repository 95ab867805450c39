// Turns a trial into the shape of the wire: its row, the names of its workspaces, and the cost of its ways' chats.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { sumSpend } from "#db/chats/spend.ts";
import type { StoredWay, TrialRow } from "#db/trials/trials.ts";
import { findFork } from "#db/workspaces/forks.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { Trial, TrialWay } from "#schema/chats/trial.ts";
import type { DomainContext } from "../context.ts";

export const presentTrial = async (ctx: Pick<DomainContext, "store">, row: TrialRow): Promise<Trial> => {
  const fork = await ctx.store.get(findFork({ id: row.fork_id }));
  const planned = new Map(fork?.copies.map(({ workspace_id, name }) => [workspace_id, name]));
  return {
    id: row.id,
    chat_id: row.chat_id,
    workspace_id: row.workspace_id,
    owner_id: row.owner_id,
    status: row.status,
    error: row.error,
    check_command: row.check_command,
    check_timeout_seconds: row.check_timeout_seconds,
    ...(row.keep ? { kept_way: row.keep.number } : {}),
    ways: await Promise.all(row.ways.map((way) => presentWay(ctx, way, planned.get(way.workspace_id) ?? ""))),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
};

const presentWay = async (
  { store }: Pick<DomainContext, "store">,
  way: StoredWay,
  planned: string,
): Promise<TrialWay> => {
  const workspace = await store.get(findWorkspaceAccessRow({ id: way.workspace_id }));
  const [spent] = way.message_id === null ? [] : await store.scan(sumSpend({ root: way.chat_id }));
  const started_at = toOptionalRfc3339(way.started_at);
  const ended_at = toOptionalRfc3339(way.ended_at);
  return {
    number: way.number,
    status: way.status,
    error: way.error,
    prompt: way.prompt,
    ...(way.model_config_id === null ? {} : { model_config_id: way.model_config_id }),
    ...(way.coding_agent === null ? {} : { coding_agent: way.coding_agent }),
    workspace_id: way.workspace_id,
    workspace_name: workspace?.name ?? planned,
    chat_id: way.chat_id,
    ...(way.changes ? { changes: way.changes } : {}),
    changes_error: way.changes_error,
    ...(way.check ? { check: way.check } : {}),
    cost_micros: Number(spent?.total_cost_micros ?? 0),
    ...(started_at === undefined ? {} : { started_at }),
    ...(ended_at === undefined ? {} : { ended_at }),
    deleted: way.gone,
  };
};
