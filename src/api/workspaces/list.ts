// The list of workspaces: filtered, counted and ordered on a reader Worker, so that a large one stalls nobody.
import type { Store } from "#db/store.ts";
import { countWorkspaces, listWorkspaces } from "#db/workspace-lists.ts";
import type { Workspaces } from "#schema/workspace.ts";
import type { UserCaller } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { workspaceFilter } from "./search.ts";
import { showWorkspaces } from "./workspace.ts";

/** The page of workspaces the caller may see that match `q`, and how many there are. */
export const searchWorkspaces = async (
  ctx: ApiContext,
  caller: UserCaller,
  q: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<Workspaces> => {
  const filter = workspaceFilter(q, caller, ctx.clock.now());
  const [views, counted] = await Promise.all([
    ctx.store.scan(listWorkspaces(filter, { viewer_id: caller.user_id, limit, offset })),
    ctx.store.scan(countWorkspaces(filter)),
  ]);
  const onWorker: Pick<Store, "all"> = { all: (query) => ctx.store.scan(query) };
  const workspaces = await showWorkspaces(ctx, views, caller, onWorker);
  return { workspaces, count: counted[0]?.count ?? 0 };
};
