// `POST me/tasks/{task}/log-snapshot`: the last messages of a task, kept for when its workspace is stopped (specification "Limits").
// There are no tasks yet, so every well-formed call is answered 404 (rule RI-5).
import { Elysia, t } from "elysia";
import { notFound } from "#base/errors.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";

/** Fixed by the specification. */
const LIMIT = 65_536;

export const taskLogSnapshot = (_ctx: ApiContext) =>
  new Elysia().use(callers).post(
    "/me/tasks/:task/log-snapshot",
    () => {
      throw notFound();
    },
    {
      agent: true,
      params: t.Object({ task: t.String({ format: "uuid", description: "Task id." }) }),
      query: t.Object({ format: t.Literal("agentapi", { description: "The form of the messages." }) }),
      body: t.Object({ messages: t.Optional(t.Array(t.Unknown())) }, { additionalProperties: true }),
      response: { 204: NoContent, ...fails(400, 401, 404, 413, 415) },
      detail: operation({
        tags: ["Agents"],
        operationId: "saveTaskLogSnapshot",
        summary: "Keep the last messages of a task",
        limit: LIMIT,
      }),
    },
  );
