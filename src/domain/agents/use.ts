// Someone works in a workspace through one of its agents: told to the workspace, at most once a minute for each connection, so that
// typing does not become messages (facts/platform 2.7, rule TI-30). Used by terminals.
import type { ActivityReport } from "#actors/workspace/activity.ts";
import { log } from "#base/log.ts";
import type { DomainContext } from "../context.ts";

export const USE_EVERY_MS = 60_000;

type Deps = Pick<DomainContext, "clock" | "workspaces">;
type OfTerminals = Deps & {
  readonly usage: Pick<DomainContext["usage"], "note" | "noteRoundTrip">;
  readonly dialer: Pick<DomainContext["dialer"], "roundTrip">;
};

/** Call the result whenever something is done; cheap. */
export const trackUse = (ctx: OfTerminals, workspace_id: string, report: Omit<ActivityReport, "at">): (() => void) => {
  let noted = Number.NEGATIVE_INFINITY;
  const { agent_id } = report;
  const use = { workspace_id, agent_id, user_id: report.by?.id ?? undefined, app: "reconnecting-pty" };
  return () => {
    ctx.usage.note(use);
    const now = ctx.clock.monotonic();
    if (now - noted < USE_EVERY_MS) return;
    noted = now;
    // What the agent itself reports is of the moment of its report, when nobody may be there.
    ctx.usage.noteRoundTrip(workspace_id, agent_id === undefined ? undefined : ctx.dialer.roundTrip(agent_id));
    void noteUse(ctx, workspace_id, report);
  };
};

/** Tells the workspace once. Never rejects: a use that is not noted hurts nobody who works. */
export const noteUse = async (ctx: Deps, workspace_id: string, report: Omit<ActivityReport, "at">): Promise<void> => {
  try {
    await ctx.workspaces.ask(workspace_id, "recordActivity", { ...report, at: ctx.clock.now() });
  } catch (error) {
    log("agents").warn("the use of workspace {workspace_id} was not noted: {error}", { workspace_id, error });
  }
};
