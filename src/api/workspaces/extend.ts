// Moving the deadline of a running workspace: by those who may change it, and by its own agent (facts/platform 2.7 and 10.1).
import { Elysia } from "elysia";
import { rfc3339 } from "#base/clock.ts";
import { invalidField, notFound } from "#base/errors.ts";
import { byUser, changeableAt } from "#domain/workspaces/changeable.ts";
import { workspacePath } from "#domain/workspaces/workspace.ts";
import { ExtendWorkspace } from "#schema/schedule.ts";
import type { ApiContext } from "../context.ts";
import { type Caller, callerOf, callers, userOf } from "../http/caller.ts";
import { fails, Generic } from "../http/responses.ts";

export const extend = (ctx: ApiContext) => {
  /** The workspace's id, and who asks. An agent's token is good for its own workspace only. */
  const targetOf = async (id: string, caller: Caller, request: Request) => {
    if (caller.kind === "agent") {
      if (caller.workspace_id !== id.toLowerCase()) throw notFound();
      return { id: caller.workspace_id, by: { kind: caller.kind, id: caller.agent_id, name: caller.agent_name } };
    }
    const user = userOf(request);
    return { id: (await changeableAt(ctx, id, user)).id, by: byUser(user) };
  };
  return new Elysia().use(callers).put(
    "/:workspace/extend",
    async ({ params, body, request }) => {
      const { id, by } = await targetOf(params.workspace, callerOf(request), request);
      const deadline = body.deadline === undefined ? Number.NaN : Date.parse(body.deadline);
      if (Number.isNaN(deadline)) throw invalidField("deadline", "must be a date and time in RFC 3339");
      await ctx.workspaces.ask(id, "extend", { deadline, by });
      return { message: `Deadline updated to ${rfc3339(deadline)}.` };
    },
    {
      anyone: true,
      params: workspacePath,
      body: ExtendWorkspace,
      response: { 200: Generic, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
      detail: {
        tags: ["Workspaces"],
        summary: "Move the deadline of a running workspace",
        description:
          "Later or sooner, at least 30 minutes ahead and not after the latest deadline its template allows. 409 when it is not running or has no deadline. The workspace's own agent may do it, too.",
      },
    },
  );
};
