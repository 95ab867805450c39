// Records use of a workspace through one of its agents, at most once a minute per connection, so that typing does not become messages
// (facts/platform 2.7, rule TI-30). Used by terminals.
import type { ActivityReport } from "#actors/workspace/activity.ts";
import { log } from "#base/log.ts";
import type { DomainContext } from "../context.ts";

export const USE_INTERVAL_MS = 60_000;

type Deps = Pick<DomainContext, "clock" | "workspaces">;
type TerminalUseDeps = Deps & {
  readonly usage: Pick<DomainContext["usage"], "note" | "noteRoundTrip">;
  readonly dialer: Pick<DomainContext["dialer"], "roundTrip">;
};

/** Returns a cheap function to call on each activity. */
export const trackUse = (
  ctx: TerminalUseDeps,
  workspace_id: string,
  report: Omit<ActivityReport, "at">,
): (() => void) => {
  let notedAt = Number.NEGATIVE_INFINITY;
  const { agent_id } = report;
  const use = { workspace_id, agent_id, user_id: report.by?.id ?? undefined, app: "reconnecting-pty" };
  return () => {
    ctx.usage.note(use);
    const now = ctx.clock.monotonic();
    if (now - notedAt < USE_INTERVAL_MS) return;
    notedAt = now;
    // The agent's own report is only from the moment it is sent, when the terminal may be idle.
    ctx.usage.noteRoundTrip(workspace_id, agent_id === undefined ? undefined : ctx.dialer.roundTrip(agent_id));
    void noteUse(ctx, workspace_id, report);
  };
};

/** Records one use. Never rejects, because a missing record must not affect the user. */
export const noteUse = async (ctx: Deps, workspace_id: string, report: Omit<ActivityReport, "at">): Promise<void> => {
  try {
    await ctx.workspaces.ask(workspace_id, "recordActivity", { ...report, at: ctx.clock.now() });
  } catch (error) {
    log("agents").warn("cannot record the use of workspace {workspace_id}: {error}", { workspace_id, error });
  }
};
