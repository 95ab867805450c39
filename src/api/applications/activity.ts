// Records use of apps and ports as use of their workspace, at most once a minute, so that traffic does not become messages (facts/platform
// 2.7). App traffic marks the workspace as used; a person who uses one of its ports also extends its deadline (rule AX-14).
import { log } from "#base/log.ts";
import type { ResolvedApp } from "#domain/applications/find.ts";
import { toActivityUser } from "#domain/workspaces/find.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";

const NOTE_INTERVAL_MS = 60_000;
const MAX_ENTRIES = 10_000;

export class AppActivity {
  readonly #ctx: Pick<ApiContext, "clock" | "workspaces" | "usage">;
  readonly #lastNotedAt = new Map<string, number>();

  constructor(ctx: Pick<ApiContext, "clock" | "workspaces" | "usage">) {
    this.#ctx = ctx;
  }

  /** Cheap enough to call for every chunk. */
  note({ workspace_id, agent_id, isPort, slug }: ResolvedApp, caller: UserCaller | undefined): void {
    const { clock, workspaces, usage } = this.#ctx;
    // Insights cover only signed-in users.
    if (caller) usage.note({ workspace_id, agent_id, user_id: caller.user_id, app: slug });
    // Anonymous callers do not keep a workspace awake.
    const reason = isPort && caller ? "port_forward" : "app_traffic";
    const key = `${workspace_id} ${reason}`;
    const at = clock.now();
    if (at - (this.#lastNotedAt.get(key) ?? -NOTE_INTERVAL_MS) < NOTE_INTERVAL_MS) return;
    if (this.#lastNotedAt.size >= MAX_ENTRIES) this.#lastNotedAt.clear();
    this.#lastNotedAt.set(key, at);
    const by = caller && toActivityUser(caller);
    workspaces.ask(workspace_id, "recordActivity", { reason, at, agent_id, by }).catch((error) => {
      log("applications").warn("cannot record the use of workspace {workspace_id}: {error}", { workspace_id, error });
    });
  }
}
