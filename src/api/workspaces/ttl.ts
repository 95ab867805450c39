// How long a workspace runs after a start (facts/platform 2.7 and 3.4), and what its other times need of the caller.
import { Elysia } from "elysia";
import { forbidden, invalidField } from "#base/errors.ts";
import type { WorkspacePlace } from "#db/workspaces.ts";
import { ttlProblem, UpdateTtl, wholeTtl } from "#schema/schedule.ts";
import { mayUpdateWorkspace } from "../access.ts";
import { callers, type UserCaller } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails, NoContent } from "../responses.ts";
import { livingWorkspaceAt, workspacePath } from "./workspace.ts";

export const ttl = (ctx: ApiContext) =>
  new Elysia().use(callers).put(
    "/:workspace/ttl",
    async ({ caller, params, body, status }) => {
      const place = await changeableAt(ctx, params.workspace, caller);
      const broken = body.ttl_ms ? ttlProblem(body.ttl_ms) : undefined;
      if (broken) throw invalidField("ttl_ms", broken);
      await ctx.workspaces.ask(place.id, "setTtl", { ttl_ms: wholeTtl(body.ttl_ms), by: byUser(caller) });
      return status(204, undefined);
    },
    {
      user: true,
      params: workspacePath,
      body: UpdateTtl,
      response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
      detail: {
        tags: ["Workspaces"],
        summary: "Set how long a workspace runs",
        description:
          "Counts from the next start; the running deadline stays where it is, except that null or 0 takes it away. 400 when the template forbids it.",
      },
    },
  );

/** A workspace that is there and that the caller may change; 403, 404 or 410 otherwise. */
export const changeableAt = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<WorkspacePlace> => {
  const place = await livingWorkspaceAt(ctx, id, caller);
  if (!mayUpdateWorkspace(caller, place)) throw forbidden("You may not change this workspace.");
  return place;
};

/** The caller as the workspace's record names people. */
export const byUser = (caller: UserCaller) => ({ kind: "user" as const, id: caller.user_id, name: caller.username });
