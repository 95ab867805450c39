// Routes an agent calls with its own token: log sources and log lines. Log lines are the hottest path of the product: they are parsed once,
// validated once, and sent as one message to the actor and one batch to the store.
import { t } from "elysia";
import { toBatchId } from "#actors/agent/log-lines.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, invalidField } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { PatchLogs } from "#schema/agents/agent-log.ts";
import { CreateLogSource, LogSource } from "#schema/agents/log-source.ts";
import { toIcon, toLine } from "#schema/text.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Agents"];

export const agentReports = (ctx: ApiContext) =>
  routes({ prefix: "/me" })
    .use(callers)
    .post(
      "/log-source",
      async ({ caller, body, status }) => {
        // Invalid values are cleaned instead of rejected: an agent cannot fix them, and its log lines must not be lost because of them.
        const cleaned = { display_name: toLine(body.display_name ?? ""), icon: toIcon(body.icon ?? "") };
        await ctx.agents.ask(caller.agent_id, "createLogSource", { ...body, ...cleaned });
        const source = {
          id: body.id,
          workspace_agent_id: caller.agent_id,
          ...cleaned,
          created_at: toRfc3339(ctx.clock.now()),
        };
        return caller.compat ? status(201, source) : source;
      },
      {
        agent: true,
        body: CreateLogSource,
        response: { 200: LogSource, 201: LogSource, ...fails(400, 401, 413, 503) },
        detail: operation({
          tags,
          operationId: "createAgentLogSource",
          access: "agent",
          summary: "Create a log source",
          description: "Creates a source that log lines refer to. Repeating an ID is not an error and changes nothing.",
          example: { id: ANY_ID, display_name: "Startup script", icon: "/emojis/1f4bb.png" },
          placement: "token",
        }),
      },
    )
    .patch(
      "/logs",
      async ({ caller, body, request }) => {
        const outcome = await ctx.agents.ask(caller.agent_id, "appendLogs", {
          log_source_id: body.log_source_id,
          logs: body.logs,
          batch_id: toBatchName(request, body),
        });
        if (outcome === "overflow") throw makeLogLimitError(ctx.config.agent_log_limit);
        return STORED;
      },
      {
        agent: true,
        body: PatchLogs,
        response: { 200: Generic, ...fails(400, 401, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "addAgentLogs",
          access: "agent",
          summary: "Add log lines",
          description:
            "Adds a batch of lines. A batch is stored completely or not at all, in order, and is on disk when the request returns. Returns 413 once the agent has reached its lifetime limit of output: stop sending. A repeated batch is stored twice unless both requests have the same `Idempotency-Key` and no other batch of the source came in between. Returns 409 for a different batch with the same key.",
          headers: {
            "Idempotency-Key": {
              description:
                "A key that identifies the batch, so that it can be retried after a lost response. At most 128 characters.",
              schema: { type: "string", maxLength: 128 },
            },
          },
          example: {
            logs: [{ created_at: "2030-01-31T09:30:00Z", level: "info", output: "Dependencies are installed." }],
          },
          placement: "token",
        }),
      },
    )
    .get(
      "/gitauth",
      () => {
        throw makeRemovedError("me/external-auth");
      },
      {
        agent: true,
        response: { 200: t.Void(), ...fails(401, 410) },
        detail: operation({
          tags,
          operationId: "getAgentGitAuth",
          access: "agent",
          summary: "Get a Git token (removed)",
          deprecated: true,
          placement: "token",
        }),
      },
    );

/** Returns the batch name of a request: its key plus a digest of its content. */
const toBatchName = (request: Request, body: object): string | undefined => {
  const key = request.headers.get("idempotency-key") ?? "";
  if (key.length > 128) throw invalidField("Idempotency-Key", "must have at most 128 characters");
  return key === "" ? undefined : toBatchId(key, sha256(JSON.stringify(body)));
};

const STORED: Generic = { message: "Logs stored." };

/** Rejects with 413 once an agent has stored as many log bytes as allowed; the agent then stops sending. */
const makeLogLimitError = (limit: number): AppError =>
  new AppError("too_large", "Agent log storage limit exceeded.", {
    detail: `Maximum is ${limit} bytes of output for each agent.`,
  });

/** Rejects with 410 for endpoints the specification marks as removed. */
export const makeRemovedError = (replacement: string): AppError =>
  new AppError("gone", "This endpoint has been removed.", { detail: `Use workspaceagents/${replacement}.` });
