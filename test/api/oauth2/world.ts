// A server with users and OAuth 2 applications, and helpers that send a client's requests.
import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { createKey, LOGIN_TTL_SECONDS } from "#domain/users/keys.ts";
import type { OAuth2App } from "#schema/oauth2/app.ts";
import type { AuthorizationRequest } from "#schema/oauth2/grant.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { fetchStatus, newPerson } from "../users/people.ts";

export const APPS = "/api/v2/oauth2-provider/apps";
export const AUTHORIZE = "/api/v2/oauth2-provider/authorize";
export const SCOPES = "workspace:read user:read";
export const VERIFIER = "a-verifier-of-at-least-43-characters-as-rfc-7636-wants";
export const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");
export const LOCAL_REDIRECT_URI = "http://127.0.0.1/callback";
export const BOARD_REDIRECT_URI = "https://reviews.example.com/callback";

/** Redirect URIs that do not belong to the editor. */
export const FOREIGN_REDIRECT_URIS = [
  "http://127.0.0.1:49152/callback/more",
  "http://127.0.0.1:49152/callback?x=1",
  "http://127.0.0.1:49152/callback#x",
  "http://user@127.0.0.1:49152/callback",
  "http://127.0.0.1.evil.example/callback",
  "http://localhost:49152/callback",
  "https://127.0.0.1/callback",
  "https://evil.example/callback",
  "//evil.example/callback",
  "javascript:alert(1)",
  "editor://back/",
  // The same address in another notation.
  "http://127.1:49152/callback",
  "http://127.0.0.1.:49152/callback",
  "http://2130706433:49152/callback",
  "HTTP://127.0.0.1:49152/callback",
  "http://127.0.0.1:49152/./callback",
  "http://127.0.0.1:49152/%63allback",
  "http://127.0.0.1:49152\\callback",
  "http://127.0.0.1:49152/call\tback",
  "http://127.0.0.1:/callback",
  "http://127.0.0.1:99999/callback",
];

/** Redirect URIs that no application may use. */
export const INVALID_REDIRECT_URIS = [
  "http://reviews.example.com/callback",
  "https://reviews.example.com/callback#x",
  "https://user:pass@reviews.example.com/",
  "https://reviews.example.com/callback?code=1",
  "javascript:alert(1)",
  "data:text/html,x",
  // Web sites can register for these, or programs send them to servers.
  ...[
    "web+evil://x/cb",
    "WEB+evil:x",
    "webcal://evil.example/cb",
    "irc://evil.example",
    "magnet:?x=1",
    "ssh://evil.example",
  ],
  ...["matrix:x", "sms:1", "mailto:x@evil.example", "http+unix://x", "ftp://evil.example/", "xmpp:x", "feed:x"],
  // Web browsers open the address in these.
  ...["microsoft-edge:https://evil.example/cb", "microsoft-edge-https://evil.example/cb", "msedge:x"],
  ...["googlechromes://evil.example/cb", "googlechrome-x-callback://x-callback-url/open/?url=x", "Firefox://open-url"],
  ...["firefox-focus://open-url", "opera-https://evil.example", "touch-https://evil.example", "ext+evil:x"],
  ...[
    "x-safari-https://evil.example/cb",
    "ddgQuickLink://evil.example",
    "brave://open-url",
    "ucbrowser://evil.example",
  ],
  ...["android-app://com.example/https/evil.example", "editor:https://evil.example/cb", "editor:http:evil.example"],
  ...["editor://open?url=https://evil.example/cb", "editor://open?url=https%3A%2F%2Fevil.example"],
  "editor://open?url=x%253A%252F%252Fevil.example",
  "/callback",
  "",
];

/** Redirect URIs of programs, with their own schemes. */
export const PROGRAM_REDIRECT_URIS = [
  ...["vscode://publisher.extension/callback?windowId=1", "cursor://anysphere.cursor-mcp/oauth/callback", "zed:/back"],
  ...["com.example.editor:/oauth2redirect", "com.example.operator:///back", "jetbrains-gateway://connect/oauth"],
];

export type Tokens = { access_token: string; refresh_token: string; expires_in: number; scope: string };
export type OAuthError = { error: string; error_description: string };
export type RegisteredClient = { client_id: string; client_secret?: string };

/**
 * Starts the server. `editor` is a public program that registered itself, `board` an owner's application with a secret, and `session`
 * ada's browser session.
 */
export const openOAuth2 = async () => {
  const clock = new ManualClock();
  const models = new ScriptedModels();
  const server = await startTestServer({
    clock,
    models,
    env: { SLIPWAY_OAUTH2_PROVIDER: "true" },
  });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const seeded = await seedAgent(server);
  const signIn = { user_id: seeded.owner_id, login_type: "password", lifetime_seconds: LOGIN_TTL_SECONDS } as const;
  const { token: session, statements } = createKey({ ...signIn, now: clock.now() });
  await getContext(server).store.commit(statements);
  const ada = admin.withToken(session);
  const bob = (await newPerson(admin, "bob")).client;
  const register = (body: object): Promise<Response> =>
    admin.withToken(undefined).fetch("POST", "/oauth2/register", body);
  const registerClient = async (body: object): Promise<RegisteredClient> => {
    const response = await register({ token_endpoint_auth_method: "none", ...body });
    expect(response.status).toBe(201);
    return (await response.json()) as RegisteredClient;
  };

  const editor = (await registerClient({ client_name: "Editor", redirect_uris: [LOCAL_REDIRECT_URI, "editor://back"] }))
    .client_id;
  const board = await admin.post<OAuth2App>(APPS, { name: "Board", callback_url: BOARD_REDIRECT_URI });
  const newSecret = await admin.post<{ client_secret_full: string }>(`${APPS}/${board.id}/secrets`);
  const boardSecret = newSecret.client_secret_full;

  /** Returns a valid authorization request of the editor; `undefined` removes a parameter. */
  const createRequest = (overrides: Record<string, string | undefined> = {}): Record<string, string> => {
    const parameters = {
      client_id: editor,
      redirect_uri: "http://127.0.0.1:49152/callback",
      response_type: "code",
      scope: SCOPES,
      state: "a state & more",
      code_challenge: CHALLENGE,
      code_challenge_method: "S256",
      ...overrides,
    };
    return Object.fromEntries(
      Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined),
    );
  };

  /** Returns what the approval page shows. */
  const getApproval = (client: Client, request: Record<string, string>): Promise<AuthorizationRequest> =>
    client.get<AuthorizationRequest>(`${AUTHORIZE}?${new URLSearchParams(request)}`);

  /** Returns where the browser goes after approval. */
  const approve = async (client: Client, request: Record<string, string>): Promise<URL> => {
    const body = { ...request, approve: true };
    return new URL((await client.post<{ redirect_to: string }>(AUTHORIZE, body)).redirect_to);
  };

  const getCode = async (request = createRequest(), client = ada): Promise<string> => {
    const code = (await approve(client, request)).searchParams.get("code");
    if (!code) throw new Error("the redirect has no code");
    return code;
  };

  /** Sends a form without any session, as clients do. */
  const send = (path: string, form: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(new URL(path, server.url), { method: "POST", body: new URLSearchParams(form), headers });

  const redeemForm = (code: string, overrides: Record<string, string> = {}): Record<string, string> => ({
    grant_type: "authorization_code",
    client_id: editor,
    redirect_uri: "http://127.0.0.1:49152/callback",
    code,
    code_verifier: VERIFIER,
    ...overrides,
  });
  const refreshForm = (refresh_token: string, overrides: Record<string, string> = {}): Record<string, string> => ({
    grant_type: "refresh_token",
    client_id: editor,
    refresh_token,
    ...overrides,
  });

  const requestTokens = async (form: Record<string, string>, headers: Record<string, string> = {}): Promise<Tokens> => {
    const response = await send("/oauth2/token", form, headers);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    expect(response.headers.get("cache-control")).toBe("no-store");
    return (await response.json()) as Tokens;
  };
  const getTokens = async (request = createRequest(), client = ada): Promise<Tokens> =>
    requestTokens(redeemForm(await getCode(request, client), { redirect_uri: request.redirect_uri ?? "" }));

  /** Returns status and error of a rejection. */
  const getRejection = async (form: Record<string, string>, headers: Record<string, string> = {}): Promise<string> => {
    const response = await send("/oauth2/token", form, headers);
    return `${response.status} ${((await response.json()) as OAuthError).error}`;
  };

  const getTokenStatus = (token: string, path = "/users/me"): Promise<number> =>
    fetchStatus(admin.withToken(token), "GET", path);
  const basicAuth = (id: string, secret: string): Record<string, string> => ({
    authorization: `Basic ${btoa(`${id}:${secret}`)}`,
  });

  return {
    clock,
    models,
    server,
    admin,
    seeded,
    session,
    ada,
    bob,
    editor,
    board,
    boardSecret,
    register,
    registerClient,
    createRequest,
    getApproval,
    approve,
    getCode,
    send,
    redeemForm,
    refreshForm,
    requestTokens,
    getTokens,
    getRejection,
    getTokenStatus,
    basicAuth,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};
