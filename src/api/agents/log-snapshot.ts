// `POST me/tasks/{task}/log-snapshot`: stores the last messages of a task so that they can be shown while its workspace is stopped
// (specification "Limits").
import { t } from "elysia";
import { storeTaskSnapshot } from "#domain/tasks/snapshot.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

/** Fixed by the specification. */
const MAX_BYTES = 65_536;

export const taskLogSnapshot = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/me/tasks/:task/log-snapshot",
      async ({ caller, params, body, set }) => {
        await storeTaskSnapshot(ctx, params.task, caller, body.messages ?? []);
        set.status = 204;
      },
      {
        agent: true,
        params: t.Object({ task: t.String({ format: "uuid", description: "The ID of the task." }) }),
        query: t.Object({ format: t.Literal("agentapi", { description: "The format of the messages." }) }),
        body: t.Object({ messages: t.Optional(t.Array(t.Unknown())) }, { additionalProperties: true }),
        response: { 204: NoContent, ...fails(400, 401, 404, 413, 415) },
        detail: operation({
          tags: ["Agents"],
          operationId: "saveTaskLogSnapshot",
          summary: "Save a task's log snapshot",
          description: "Stores the last messages of a task. The task's log shows them until its chat starts.",
          limit: MAX_BYTES,
          example: { messages: [{ id: 1, role: "user", content: "Hello!", time: "2030-01-31T09:30:00Z" }] },
          access: "agent",
          placement: "token",
        }),
      },
    );
