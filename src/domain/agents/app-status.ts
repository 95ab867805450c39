// Records the progress of an app in the workspace, such as an assistant (rules AP-1 to AP-4), reported over REST or the agent's connection.
import type { AgentActor } from "#actors/agent/actor.ts";
import { findNewestAppState } from "#db/agents/app-statuses.ts";
import type { DomainContext } from "../context.ts";
import { noteUse } from "./use.ts";

type Report = Parameters<AgentActor["reportAppStatus"]>[0];
type Source = { readonly agent_id: string; readonly workspace_id: string };

/** Stores the report. Starting or finishing work is activity of the workspace; continuing is not (facts/platform 2.7, rule TI-30). */
export const reportAppStatus = async (ctx: DomainContext, source: Source, report: Report): Promise<void> => {
  const { agent_id, workspace_id } = source;
  const before = await ctx.store.get(findNewestAppState({ agent_id, slug: report.app_slug }));
  await ctx.agents.ask(agent_id, "reportAppStatus", report);
  if ((before?.state === "working") === (report.state === "working")) return;
  await noteUse(ctx, workspace_id, { reason: "app_status", agent_id });
};
