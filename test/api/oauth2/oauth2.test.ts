// The flow in which an application gets access from a person, and attacks on it.
import { afterAll, expect, test } from "bun:test";
import type { OAuth2App } from "#schema/oauth2/app.ts";
import type { Session } from "#schema/users/api-key.ts";
import { fetchStatus } from "../users/people.ts";
import {
  APPS,
  AUTHORIZE,
  BOARD_REDIRECT_URI,
  CHALLENGE,
  FOREIGN_REDIRECT_URIS,
  LOCAL_REDIRECT_URI,
  type OAuthError,
  openOAuth2,
  SCOPES,
  type Tokens,
  VERIFIER,
} from "./world.ts";

const MINUTE = 60_000;

const world = await openOAuth2();
afterAll(() => world[Symbol.asyncDispose]());
const { clock, server, admin, seeded, session, ada, editor, board, boardSecret } = world;
const { registerClient, createRequest, getApproval, approve, getCode, send } = world;
const { redeemForm, refreshForm, requestTokens, getTokens, getRejection, getTokenStatus, basicAuth } = world;

test("[OA-4] [OA-6] [OA-12] a program registers itself, gets access, and can use its scopes for an hour", async () => {
  const metadata = await fetch(new URL("/.well-known/oauth-authorization-server", server.url));
  const issuer = server.url.origin;
  expect(await metadata.json()).toMatchObject({
    issuer,
    authorization_endpoint: `${issuer}/oauth2/authorize`,
    token_endpoint: `${issuer}/oauth2/token`,
    registration_endpoint: `${issuer}/oauth2/register`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
  });
  const resource = await fetch(new URL("/.well-known/oauth-protected-resource", server.url));
  expect(await resource.json()).toMatchObject({ resource: issuer, authorization_servers: [issuer] });
  expect(await getApproval(ada, createRequest())).toEqual({
    app: { id: editor, name: "Editor", icon: "", self_registered: true },
    scopes: ["workspace:read", "user:read"],
    sends_to: "a program on your own machine (127.0.0.1:49152)",
  });
  const redirect = await approve(ada, createRequest());
  expect(redirect.origin + redirect.pathname).toBe("http://127.0.0.1:49152/callback");
  expect(Object.fromEntries(redirect.searchParams)).toEqual({
    code: expect.stringMatching(/^[A-Za-z0-9]{43}$/),
    state: "a state & more",
    iss: issuer,
  });
  const grantedTokens = await requestTokens(redeemForm(redirect.searchParams.get("code") ?? ""));
  expect(grantedTokens).toMatchObject({ token_type: "Bearer", expires_in: 3600, scope: SCOPES });
  const bearer = await fetch(new URL("/api/v2/users/me", server.url), {
    headers: { authorization: `Bearer ${grantedTokens.access_token}` },
  });
  expect(bearer.status).toBe(200);
  // The token is not accepted in a URL, which logs and histories store.
  for (const name of ["access_token", "service_session_token", "coder_session_token"]) {
    const inQuery = await fetch(new URL(`/api/v2/users/me?${name}=${grantedTokens.access_token}`, server.url));
    expect([name, inQuery.status]).toEqual([name, 401]);
  }
  expect(await getTokenStatus(grantedTokens.access_token, "/workspaces")).toBe(200);
  // The token has only its scopes, and cannot create a permanent key.
  expect(await getTokenStatus(grantedTokens.access_token, "/users/me/gitsshkey")).toBe(403);
  const fullTokens = await getTokens(createRequest({ scope: "coder:all" }));
  expect(await getTokenStatus(fullTokens.access_token, "/users/me/gitsshkey")).toBe(200);
  for (const path of ["/users/me/keys/tokens", "/users/me/keys"]) {
    expect(
      await fetchStatus(
        admin.withToken(fullTokens.access_token),
        "POST",
        path,
        path.endsWith("s/tokens") ? {} : undefined,
      ),
    ).toBe(403);
  }
  // The access is neither a session nor a token of the user: lists of sessions omit it, and ending them does not affect it.
  const id = grantedTokens.access_token.slice(0, 10);
  const sessions = await ada.get<Session[]>("/api/v2/users/me/sessions");
  expect(sessions.map((session) => session.id)).not.toContain(fullTokens.access_token.slice(0, 10));
  expect(await fetchStatus(ada, "DELETE", `/users/me/sessions/${id}`)).toBe(404);
  expect(await fetchStatus(ada, "DELETE", "/users/me/sessions")).toBe(204);
  clock.advance(59 * MINUTE);
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(200);
  clock.advance(MINUTE);
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(401);
});

test("[OA-5] rejects an unknown application or a foreign redirect URI without a redirect", async () => {
  const invalidRequests = [
    { client_id: board.id },
    { client_id: "6ba7b810-9dad-41d1-80b4-00c04fd430c8" },
    { client_id: "editor" },
    ...FOREIGN_REDIRECT_URIS.map((redirect_uri) => ({ redirect_uri })),
    { client_id: board.id, redirect_uri: `${BOARD_REDIRECT_URI}/..` },
    { client_id: board.id, redirect_uri: BOARD_REDIRECT_URI.replace("https", "http") },
    { client_id: board.id, redirect_uri: BOARD_REDIRECT_URI.replace(".com", ".com:444") },
  ];
  for (const parameters of invalidRequests) {
    const request = createRequest(parameters);
    const query = `/oauth2-provider/authorize?${new URLSearchParams(request)}`;
    expect([parameters, await fetchStatus(ada, "GET", query)]).toEqual([parameters, 400]);
    const body = { ...request, approve: true };
    const status = await fetchStatus(ada, "POST", "/oauth2-provider/authorize", body);
    expect([parameters, status]).toEqual([parameters, 400]);
  }
  expect((await approve(ada, createRequest({ redirect_uri: "editor://back" }))).protocol).toBe("editor:");
});

test("[OA-6] [OA-8] returns every other error, and a denial, to the application", async () => {
  const mistakes = [
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ response_type: undefined }, "invalid_request"],
    [{ response_mode: "fragment" }, "invalid_request"],
    [{ code_challenge: undefined }, "invalid_request"],
    [{ code_challenge_method: "plain", code_challenge: VERIFIER }, "invalid_request"],
    [{ code_challenge_method: undefined }, "invalid_request"],
    [{ scope: undefined }, "invalid_scope"],
    [{ scope: "workspace:read everything" }, "invalid_scope"],
    [{ resource: "https://elsewhere.example/" }, "invalid_target"],
    [{ resource: `${server.url.origin}/api#part` }, "invalid_target"],
    [{ resource: "/api" }, "invalid_target"],
  ] as const;
  for (const [overrides, error] of mistakes) {
    const request = createRequest(overrides);
    const approval = await getApproval(ada, request);
    for (const redirect of [new URL(approval.error_redirect ?? ""), await approve(ada, request)]) {
      expect([overrides, Object.fromEntries(redirect.searchParams)]).toEqual([
        overrides,
        { error, error_description: expect.any(String), state: "a state & more", iss: server.url.origin },
      ]);
    }
  }
  const body = { ...createRequest(), approve: false };
  const { redirect_to } = await ada.post<{ redirect_to: string }>(AUTHORIZE, body);
  expect(new URL(redirect_to).searchParams.get("error")).toBe("access_denied");
  const limitedProgram = await registerClient({ redirect_uris: [LOCAL_REDIRECT_URI], scope: "workspace:read" });
  const limited = { client_id: limitedProgram.client_id };
  expect((await getApproval(ada, createRequest({ ...limited, scope: undefined }))).scopes).toEqual(["workspace:read"]);
  expect((await getApproval(ada, createRequest({ ...limited, scope: "workspace:*" }))).error_redirect).toContain(
    "invalid_scope",
  );
});

test("[OA-7] [OA-9] only a signed-in user can approve, on a page of this server", async () => {
  const body = { ...createRequest(), approve: true };
  const approveFrom = (origin: string): Promise<Response> =>
    admin.withToken(undefined).fetch("POST", AUTHORIZE, body, {
      headers: { cookie: `service_session_token=${session}`, origin },
    });
  expect((await approveFrom("https://evil.example")).status).toBe(403);
  expect((await approveFrom("null")).status).toBe(403);
  expect((await approveFrom(server.url.origin)).status).toBe(200);
  expect((await admin.withToken(undefined).fetch("POST", AUTHORIZE, body)).status).toBe(401);
  const { key } = await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  expect(await fetchStatus(admin.withToken(key), "POST", "/oauth2-provider/authorize", body)).toBe(403);
  const fullTokens = await getTokens(createRequest({ scope: "all" }));
  expect(await fetchStatus(admin.withToken(fullTokens.access_token), "POST", "/oauth2-provider/authorize", body)).toBe(
    403,
  );
  const page = await fetch(new URL(`/oauth2/authorize?${new URLSearchParams(createRequest())}`, server.url));
  expect(page.status).toBe(200);
  expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  // Opening the page grants nothing.
  expect(await page.text()).not.toContain("code=");
});

test("[OA-10] a client authenticates as registered: in the header, in the form, or with PKCE", async () => {
  const request = createRequest({ client_id: board.id, redirect_uri: BOARD_REDIRECT_URI });
  const createForm = async (): Promise<Record<string, string>> => {
    const { client_id: _, ...rest } = redeemForm(await getCode(request), { redirect_uri: BOARD_REDIRECT_URI });
    return rest;
  };
  const grantedTokens = await requestTokens(await createForm(), basicAuth(board.id, boardSecret));
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(200);
  await requestTokens({ ...(await createForm()), client_id: board.id, client_secret: boardSecret });
  const invalidRequests = [
    [{}, basicAuth(board.id, "wrong"), "401 invalid_client"],
    [{}, basicAuth(board.id, ""), "401 invalid_client"],
    [{ client_id: board.id }, {}, "401 invalid_client"],
    [{ client_id: board.id, client_secret: "wrong" }, {}, "401 invalid_client"],
    [{ client_id: editor, client_secret: boardSecret }, {}, "401 invalid_client"],
    [{ client_secret: boardSecret }, basicAuth(board.id, boardSecret), "400 invalid_request"],
    [{ client_id: editor }, basicAuth(board.id, boardSecret), "400 invalid_request"],
    [{}, {}, "400 invalid_request"],
    [{ grant_type: "password" }, basicAuth(board.id, boardSecret), "400 unsupported_grant_type"],
  ] as const;
  const form = await createForm();
  for (const [overrides, headers, expected] of invalidRequests) {
    expect([overrides, await getRejection({ ...form, ...overrides }, headers)]).toEqual([overrides, expected]);
  }
  const json = await fetch(new URL("/oauth2/token", server.url), {
    method: "POST",
    body: JSON.stringify(form),
    headers: { ...basicAuth(board.id, boardSecret), "content-type": "application/json" },
  });
  expect([json.status, ((await json.json()) as OAuthError).error]).toEqual([400, "invalid_request"]);
  const duplicateCode = await fetch(new URL("/oauth2/token", server.url), {
    method: "POST",
    body: `${new URLSearchParams(form)}&code=x`,
    headers: { ...basicAuth(board.id, boardSecret), "content-type": "application/x-www-form-urlencoded" },
  });
  expect(((await duplicateCode.json()) as OAuthError).error).toBe("invalid_request");
  // The code is still valid after these requests.
  await requestTokens(form, basicAuth(board.id, boardSecret));
});

test("[OA-11] a code is valid once, for five minutes, for its application, redirect URI and verifier", async () => {
  const code = await getCode();
  const otherProgram = await registerClient({ redirect_uris: [LOCAL_REDIRECT_URI] });
  for (const overrides of [
    { code_verifier: `${VERIFIER}x` },
    { code_verifier: CHALLENGE },
    { redirect_uri: "http://127.0.0.1:49153/callback" },
    { client_id: otherProgram.client_id },
    { code: `${code}x` },
  ] as Record<string, string>[]) {
    expect([overrides, await getRejection(redeemForm(code, overrides))]).toEqual([overrides, "400 invalid_grant"]);
  }
  const { code_verifier: _, ...withoutVerifier } = redeemForm(code);
  expect(await getRejection(withoutVerifier)).toBe("400 invalid_request");
  const grantedTokens = await requestTokens(redeemForm(code));
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(200);
  expect(await getRejection(redeemForm(code))).toBe("400 invalid_grant");
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(401);
  expect(await getRejection(refreshForm(grantedTokens.refresh_token))).toBe("400 invalid_grant");
  const racedCode = await getCode();
  const responses = await Promise.all([0, 1].map(() => send("/oauth2/token", redeemForm(racedCode))));
  const bodies = (await Promise.all(responses.map((response) => response.json()))) as Partial<Tokens>[];
  expect(bodies.filter(({ access_token }) => access_token !== undefined).length).toBeLessThanOrEqual(1);
  for (const { access_token } of bodies) if (access_token) expect(await getTokenStatus(access_token)).toBe(401);
  expect(await getRejection(redeemForm(await getCode(), { resource: "https://elsewhere.example" }))).toBe(
    "400 invalid_target",
  );
  // The application's owner removes the redirect URI before the code is redeemed.
  const moved = await admin.post<OAuth2App>(APPS, {
    name: "Moved",
    callback_url: LOCAL_REDIRECT_URI,
    token_endpoint_auth_method: "none",
  });
  const ownClient = { client_id: moved.id };
  const movedCode = await getCode(createRequest(ownClient));
  await admin.put(`${APPS}/${moved.id}`, { callback_url: "http://127.0.0.1/elsewhere" });
  expect(await getRejection(redeemForm(movedCode, ownClient))).toBe("400 invalid_grant");
  await admin.delete(`${APPS}/${moved.id}`);
  const expiredCode = await getCode();
  clock.advance(5 * MINUTE);
  expect(await getRejection(redeemForm(expiredCode))).toBe("400 invalid_grant");
});

test("[OA-8] [OA-13] [OA-16] a refresh replaces both tokens and keeps connections; reuse revokes everything", async () => {
  const first = await getTokens();
  const watch = await admin.withToken(first.access_token).socket(`/api/v2/workspaces/${seeded.workspace_id}/watch-ws`);
  const second = await requestTokens(refreshForm(first.refresh_token));
  expect(second.access_token).not.toBe(first.access_token);
  expect([await getTokenStatus(first.access_token), await getTokenStatus(second.access_token)]).toEqual([401, 200]);
  expect(await getRejection(refreshForm(second.refresh_token, { scope: "workspace:*" }))).toBe("400 invalid_scope");
  expect(await getRejection(refreshForm(second.refresh_token, { scope: "all" }))).toBe("400 invalid_scope");
  expect(await getRejection(refreshForm(second.refresh_token, { client_id: board.id }))).toBe("401 invalid_client");
  const otherProgram = await registerClient({ redirect_uris: [LOCAL_REDIRECT_URI] });
  expect(await getRejection(refreshForm(second.refresh_token, otherProgram))).toBe("400 invalid_grant");
  const narrowed = await requestTokens(refreshForm(second.refresh_token, { scope: "user:read" }));
  expect(narrowed.scope).toBe("user:read");
  expect(await getTokenStatus(narrowed.access_token, "/workspaces")).toBe(403);
  const third = await requestTokens(refreshForm(narrowed.refresh_token));
  expect(third.scope).toBe(SCOPES);
  expect(await getRejection(refreshForm(second.refresh_token))).toBe("400 invalid_grant");
  expect(await getTokenStatus(third.access_token)).toBe(401);
  expect(await getRejection(refreshForm(third.refresh_token))).toBe("400 invalid_grant");
  expect((await watch.closed).code).toBe(1008);
  // Of several concurrent uses of one refresh token at most one succeeds, and its tokens are soon revoked.
  const raced = await getTokens();
  const responses = await Promise.all([0, 1, 2].map(() => send("/oauth2/token", refreshForm(raced.refresh_token))));
  const bodies = (await Promise.all(responses.map((response) => response.json()))) as Partial<Tokens>[];
  const issuedTokens = bodies.flatMap(({ access_token }) => access_token ?? []);
  expect(issuedTokens.length).toBeLessThanOrEqual(1);
  for (const token of [raced.access_token, ...issuedTokens]) expect(await getTokenStatus(token)).toBe(401);
});
