// `POST {agent}/files`: uploads a file to the workspace, such as one dropped on a terminal (rule PT-8).
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { MAX_AGENT_FILE_BYTES, uploadToAgent } from "#domain/agents/upload.ts";
import { UploadedAgentFile } from "#schema/agents/agent-upload.ts";
import type { ApiContext } from "../context.ts";
import { limitSlowBody } from "../files.ts";
import { tooLarge } from "../http/body/body.ts";
import { reserveStreamedBody } from "../http/body/budget.ts";
import { callers, getUser } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const MAX_NAME_LENGTH = 255;

/** Returns a file name without a path. Rejects names that point elsewhere or cannot be displayed. */
const parseName = (name: string): string => {
  const isPlain = !/[/\\]|\p{Cc}/u.test(name) && name !== "." && name !== "..";
  if (name === "" || Buffer.byteLength(name) > MAX_NAME_LENGTH || !isPlain) {
    throw invalidField("name", `must be a file name of 1 to ${MAX_NAME_LENGTH} bytes`);
  }
  return name;
};

export const agentUpload = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:workspaceagent/files",
      async ({ caller, params, query, request, status }) => {
        if (Number(request.headers.get("content-length") ?? 0) > MAX_AGENT_FILE_BYTES)
          throw tooLarge(MAX_AGENT_FILE_BYTES);
        const { agent_id, workspace_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        const { name, terminal = "", folder = "", replace = false } = query;
        const plainName = parseName(name);
        const sender = { user_id: getUser(request).user_id, address: ctx.addresses.of(request) };
        const reservation = reserveStreamedBody(request, { receiver: workspace_id, ...sender });
        const readBody = async function* (): AsyncGenerator<Uint8Array> {
          yield* limitSlowBody(ctx, request, MAX_AGENT_FILE_BYTES, reservation);
          // The agent discards a file whose end does not arrive.
          await loadUsableAgent(ctx.store, params.workspaceagent, getUser(request));
        };
        const body = readBody();
        const upload = { name: plainName, terminal: terminal.toLowerCase(), folder, replace, body };
        try {
          return status(201, await uploadToAgent(ctx, agent_id, upload));
        } finally {
          reservation.release();
        }
      },
      {
        user: true,
        params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) }),
        query: t.Object({
          name: t.String({ description: "The name of the file, without folders." }),
          terminal: t.Optional(
            t.String({
              format: "uuid",
              description:
                "The ID of a terminal, to upload to the current folder of its foreground program. Default: the agent's folder.",
            }),
          ),
          folder: t.Optional(
            t.String({
              maxLength: 4_096,
              description: "The destination folder, if `terminal` is not set.",
            }),
          ),
          replace: t.Optional(
            t.Boolean({ description: "Replace an existing file with this name instead of returning 409." }),
          ),
        }),
        response: { 201: UploadedAgentFile, ...fails(400, 401, 403, 404, 408, 409, 413, 500, 503) },
        detail: operation({
          // The body is streamed to the agent.
          reads: "stream",
          limit: MAX_AGENT_FILE_BYTES,
          accepts: ["application/octet-stream"],
          tags: ["Agents"],
          operationId: "uploadAgentFile",
          summary: "Upload a file to a workspace",
          description: `The request body is the content of the file, at most ${MAX_AGENT_FILE_BYTES} bytes. It is written atomically by the workspace's user. Returns 400 with the agent's state if the agent is not connected.`,
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    );
