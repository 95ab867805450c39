// OAuth 2 sign-in at an MCP server, for each user separately: the browser is redirected there and returns with a code (rule MC-9). The
// state in the URL is valid for ten minutes and only in the session that started it.
import { t } from "elysia";
import { AppError, invalid } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { guardMcpServer, type McpServerRow } from "#db/models/mcp-servers.ts";
import { toOAuthProvider } from "#domain/mcp/access.ts";
import { findServer, signOutOfServer } from "#domain/mcp/servers.ts";
import { authorizeUrl, ProviderError } from "#src/git/oauth.ts";
import type { Provider } from "#src/git/provider.ts";
import * as setting from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { createState, openVerifier } from "../external-auth/web-flow.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { serverPath, tags } from "./servers.ts";

/** The callback URL registered by the MCP server's administrator, so its form must never change. */
const toCallbackUrl = (accessUrl: URL, { organization_id, id }: McpServerRow): URL =>
  new URL(`/api/v2/organizations/${organization_id}/mcp-servers/${id}/oauth2/callback`, accessUrl);

export const mcpSignIn = (ctx: ApiContext) => {
  const requireProvider = (server: McpServerRow): Provider => {
    const provider = toOAuthProvider(ctx.encryption, server);
    if (!provider) throw invalid("This MCP server requires no sign-in.");
    return provider;
  };
  return routes()
    .use(callers)
    .post(
      "/:organization/mcp-servers/:mcp_server/oauth2/start",
      async ({ caller, params }) => {
        const server = await findServer(ctx, params, caller);
        const provider = requireProvider(server);
        const { state, verifier } = createState(ctx, caller, provider);
        return {
          url: authorizeUrl(provider, { redirect: toCallbackUrl(ctx.accessUrl, server), state, verifier }).href,
        };
      },
      {
        user: true,
        params: serverPath,
        response: {
          200: t.Object({
            url: t.String({ description: "The URL of the server's sign-in page. Redirect the browser to it." }),
          }),
          ...fails(400, 401, 404),
        },
        detail: operation({
          tags,
          operationId: "startMcpServerSignIn",
          summary: "Start signing in to an MCP server",
          description: "The sign-in applies to the caller's own chats.",
          access: "members",
          outlivesGrant: true,
          scope: "mcp_server:update",
        }),
      },
    )
    .get(
      "/:organization/mcp-servers/:mcp_server/oauth2/callback",
      async ({ caller, params, query }) => {
        const server = await findServer(ctx, params, caller);
        const provider = requireProvider(server);
        const verifier = openVerifier(ctx, caller, provider, query.state ?? "");
        if (query.code === undefined)
          throw invalid("The server rejected the request.", [], (query.error ?? "").slice(0, 200));
        const redirect = toCallbackUrl(ctx.accessUrl, server);
        const tokens = await ctx.links.client
          .exchange(provider, { code: query.code, redirect, verifier })
          .catch(rethrowProviderError);
        // The server's URL may have changed while the tokens were requested. They must never be sent to the new URL.
        await ctx.links.put(caller.user_id, provider, tokens, [guardMcpServer(server)]).catch(rethrowChanged);
        return `You are signed in at ${server.display_name}. This window can be closed.\n`;
      },
      {
        user: true,
        params: serverPath,
        query: t.Object({
          code: t.Optional(t.String({ description: "The authorization code that the server returned." })),
          state: t.Optional(t.String({ description: "The state that was sent to the server." })),
          error: t.Optional(t.String({ description: "The error that the server returned." })),
        }),
        response: { 200: t.String(), ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "completeMcpServerSignIn",
          summary: "Complete signing in to an MCP server",
          description: "The redirect URL, to which the server sends the browser.",
          access: "members",
          scope: "mcp_server:update",
        }),
      },
    )
    .delete(
      "/:organization/mcp-servers/:mcp_server/oauth2",
      async ({ caller, params, set }) => {
        await signOutOfServer(ctx, await findServer(ctx, params, caller), caller);
        set.status = 204;
      },
      {
        user: true,
        params: serverPath,
        response: { 204: NoContent, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "signOutOfMcpServer",
          summary: "Sign out of an MCP server",
          audit: target.deletes(setting.linkIn("mcp_server")),
          access: "members",
          scope: "mcp_server:update",
          outlivesGrant: true,
        }),
      },
    );
};

const rethrowChanged = (error: unknown): never => {
  if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
  throw invalid("The MCP server was changed while you signed in. Start the sign-in again.");
};

const rethrowProviderError = (error: unknown): never => {
  if (!(error instanceof ProviderError)) throw error;
  if (error.kind === "denied") throw invalid("The server rejected the request.", [], error.code || error.message);
  throw new AppError("overloaded", "The server cannot be reached.", { detail: error.message });
};
