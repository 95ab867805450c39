// `PATCH me/app-status`: an app of the workspace, such as an assistant, says how far it is (facts/platform 3.6, rules AP-1 to AP-4).
import { Elysia } from "elysia";
import type { AgentActor } from "#actors/agent/agent-actor.ts";
import { invalidField } from "#base/errors.ts";
import { findNewestAppState } from "#db/app-statuses.ts";
import { PatchAppStatus, STATUS_MESSAGE } from "#schema/app.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails, Generic } from "../responses.ts";
import { noteUse } from "./use.ts";

const STORED: Generic = { message: "Status stored." };

export const agentAppStatus = (ctx: ApiContext) =>
  new Elysia().use(callers).patch(
    "/me/app-status",
    async ({ caller, body }) => {
      const { app_slug, state, message = "", uri = "" } = body;
      if (Buffer.byteLength(message) > STATUS_MESSAGE) throw invalidField("message", "must have at most 160 bytes");
      await reportAppStatus(ctx, caller, { app_slug, state, message, uri });
      return STORED;
    },
    {
      agent: true,
      body: PatchAppStatus,
      response: { 200: Generic, ...fails(400, 401, 413, 503) },
      detail: {
        tags: ["Agents"],
        summary: "Report the status of an app",
        description:
          "Shown newest first in the app's `statuses`, and the newest of the workspace as its `latest_app_status`. The newest 50 of an app are kept.",
      },
    },
  );

type Report = Parameters<AgentActor["report_app_status"]>[0];
type Source = { readonly agent_id: string; readonly workspace_id: string };

/** Keeps it. To begin or to end to work is use of the workspace; to go on is not (facts/platform 2.7, rule TI-30). */
export const reportAppStatus = async (ctx: ApiContext, source: Source, report: Report): Promise<void> => {
  const { agent_id, workspace_id } = source;
  const before = await ctx.store.get(findNewestAppState({ agent_id, slug: report.app_slug }));
  await ctx.agents.ask(agent_id, "report_app_status", report);
  if ((before?.state === "working") === (report.state === "working")) return;
  await noteUse(ctx, workspace_id, { reason: "app_status", agent_id });
};
