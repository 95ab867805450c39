// `GET {agent}/files` and `GET {agent}/files/content`: lists and reads files of a running workspace (rule PT-10).
import { t } from "elysia";
import { canUseWorkspace } from "#domain/access.ts";
import { listAgentFolder, readAgentFile } from "#domain/agents/files.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { formatDisposition } from "#domain/chats/file-name.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { DirectoryListing } from "#schema/agents/agent-files.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { reserveAnswer } from "../http/dial-agent.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { watchAccess } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";

const MAX_PATH_LENGTH = 4_096;
const BYTES_TYPE = "application/octet-stream";

const params = t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) });
const pathSchema = (description: string) => t.String({ minLength: 1, maxLength: MAX_PATH_LENGTH, description });
const PATH_DESCRIPTION = "Relative to the agent's folder unless it starts with / or ~.";

export const agentFiles = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspaceagent/files",
      async ({ caller, params, query, request }) => {
        const { agent_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        const reserve = reserveAnswer(ctx, request, caller.user_id);
        return listAgentFolder(ctx, agent_id, query.path ?? ".", reserve);
      },
      {
        user: true,
        params,
        query: t.Object({
          path: t.Optional(pathSchema(`The path of the folder; default: the agent's folder. ${PATH_DESCRIPTION}`)),
        }),
        response: { 200: DirectoryListing, ...fails(400, 401, 403, 404, 408, 500, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "listAgentFiles",
          summary: "List files in a workspace folder",
          description:
            "Returns the entries of a folder, sorted by name; at most 10,000. Returns 400 if the agent is not connected.",
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    )
    .get(
      "/:workspaceagent/files/content",
      async ({ caller, params, query }) => {
        const { agent_id, workspace_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        const { size, bytes } = await readAgentFile(ctx, agent_id, query.path, query.limit);
        const access = makeWorkspaceAccess(ctx, workspace_id, canUseWorkspace);
        const watch = (end: () => void) => watchAccess(ctx, caller, access, end);
        return new Response(toStream(bytes, watch), {
          headers: {
            "content-type": BYTES_TYPE,
            "content-disposition": formatDisposition("attachment", query.path.split("/").at(-1) ?? ""),
            "cache-control": "private, no-store",
            "content-security-policy": "default-src 'none'; sandbox",
            "x-content-type-options": "nosniff",
            "x-file-size": String(size),
          },
        });
      },
      {
        user: true,
        params,
        query: t.Object({
          path: pathSchema(`The path of the file. ${PATH_DESCRIPTION}`),
          limit: t.Optional(
            t.Integer({
              minimum: 1,
              description: "The number of bytes to return, from the start of the file; default all.",
            }),
          ),
        }),
        response: fails(400, 401, 403, 404, 408, 500, 503),
        detail: operation({
          tags: ["Agents"],
          operationId: "downloadAgentFile",
          summary: "Download a file from a workspace",
          description: "Returns the content of a regular file, with its full size in `X-File-Size`.",
          answers: [BYTES_TYPE],
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    );

/**
 * Reads only as fast as the client does. When the client disconnects, the agent's response ends too; when `watch` reports that the caller
 * has lost access, both end.
 */
const toStream = (
  bytes: AsyncGenerator<Uint8Array, void, undefined>,
  watch: (end: () => void) => () => void,
): ReadableStream<Uint8Array> => {
  let unwatch = (): void => {};
  let hasLostAccess = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      unwatch = watch(() => {
        hasLostAccess = true;
        // Cuts the connection so that the client doesn't mistake the content for complete. The runtime would print a reason.
        controller.error(undefined);
        void bytes.return().catch(() => {});
      });
    },
    async pull(controller) {
      try {
        const { done, value } = await bytes.next();
        if (hasLostAccess) return;
        if (!done) return controller.enqueue(value);
        unwatch();
        controller.close();
      } catch {
        unwatch();
        if (!hasLostAccess) controller.error(undefined);
      }
    },
    async cancel() {
      unwatch();
      await bytes.return();
    },
  });
};
