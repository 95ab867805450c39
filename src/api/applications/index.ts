// Routes about the hosts of apps, and the transfer of a sign-in to them (facts/platform 8.4).
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { formatLabel } from "#base/links/app-label.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { type AppHosts, findNextSignInOrigin, makeAppHosts } from "#domain/applications/names.ts";
import { ApplicationHost, TerminalTicket, TerminalTicketRequest } from "#schema/users/application.ts";
import type { ApiContext } from "../context.ts";
import { callers, getUser } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { acceptsPage } from "../http/plain-page.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { isSignedIn, redirectTo, redirectToSignIn } from "../http/sign-in-first.ts";
import { createTicket, parseTerminalAgent } from "../http/terminal-ticket.ts";
import { HandOver, KEY_PARAMETER } from "./hand-over.ts";

const tags = ["Applications"];

export const applications = (ctx: ApiContext) => {
  const getHosts = ({ headers }: Request): AppHosts => makeAppHosts(ctx, headers.get("host") ?? "");
  const handOver = new HandOver(ctx);
  return routes({ prefix: "/applications" })
    .use(callers)
    .get(
      "/host",
      ({ request }) => ({
        host: getHosts(request).wildcard,
        external_app_schemes: [...ctx.config.external_app_schemes],
      }),
      {
        user: true,
        response: { 200: ApplicationHost, ...fails(401) },
        detail: operation({
          tags,
          operationId: "getApplicationHost",
          summary: "Get the host of apps",
          access: "users",
          scope: "any",
        }),
      },
    )
    .post(
      "/reconnecting-pty-signed-token",
      async ({ caller, body }) => {
        const { agent_id } = await loadUsableAgent(ctx.store, body.agentID, caller);
        const url = URL.canParse(body.url) ? new URL(body.url) : undefined;
        if (!url || !/^(?:https?|wss?):$/.test(url.protocol) || parseTerminalAgent(url.pathname) !== agent_id) {
          throw invalidField("url", "must be the address of this agent's terminal");
        }
        return { signed_token: createTicket(ctx, caller, agent_id) };
      },
      {
        user: true,
        body: TerminalTicketRequest,
        response: { 200: TerminalTicket, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createTerminalTicket",
          summary: "Create a terminal ticket",
          description:
            "Returns a ticket for a page on another host, whose WebSocket sends no cookie. `signed_token` opens this agent's terminal for one minute. The terminal closes when the session that requested the ticket ends.",
          example: {
            url: "wss://example.com/api/v2/workspaceagents/6ba7b810-9dad-41d1-80b4-00c04fd430c8/pty",
            agentID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
          },
          access: "owner",
          scope: "workspace:ssh",
        }),
      },
    )
    .get(
      "/auth-redirect",
      ({ request, query }) => {
        const caller = getUser(request);
        // Without a target, redirects to the server itself.
        if (!query.redirect_uri) return redirectTo(ctx.accessUrl.href);
        const target = getHosts(request).parseTarget(query.redirect_uri);
        const label = target && formatLabel(target.name);
        if (!target || !label) throw invalidField("redirect_uri", "must be the URL of an app on a host of its own");
        // Appended to the raw query, because an app may parse its query in its own way.
        target.url.search += `${target.url.search === "" ? "?" : "&"}${KEY_PARAMETER}=${encodeURIComponent(handOver.offer(caller, label))}`;
        return redirectTo(target.url.href);
      },
      {
        // A person who came from an app signs in first and then continues; a program gets an error.
        transform: ({ request }) => {
          if (!acceptsPage(request)) getUser(request);
        },
        beforeHandle: ({ request }) => (isSignedIn(request) ? undefined : signIn(ctx, request)),
        query: t.Object({
          redirect_uri: t.Optional(
            t.String({
              maxLength: 8192,
              description: "The URL of an app on its own host; default: the URL of this server.",
            }),
          ),
        }),
        response: {
          307: t.Void({
            description: "Redirects to the app with an encrypted key or, without a target, to this server.",
          }),
          ...fails(400, 401, 403),
        },
        detail: operation({
          tags,
          security: [{ session_token: [] }],
          operationId: "redirectToApplication",
          summary: "Sign in to an app",
          description:
            "Redirects the browser to an app on its own host, with an encrypted API key of the scope `application_connect` in the query. The key works once, for one minute, on that host only. A browser without a session is redirected to the sign-in page first.",
          access: "users",
          scope: "workspace:application_connect",
        }),
      },
    );
};

/** Sends a person to the access URL, where they may already be signed in, and from there to the sign-in page. */
const signIn = (ctx: ApiContext, request: Request): Response => {
  const next = findNextSignInOrigin(ctx, request.headers.get("host") ?? "");
  if (next === undefined) return redirectToSignIn(request);
  const { pathname, search } = new URL(request.url);
  return redirectTo(`${next}${pathname}${search}`);
};
