// The flow of an application that asks people for access, and all attacks on it.
import { afterAll, expect, test } from "bun:test";
import type { OAuth2App } from "#schema/oauth2/app.ts";
import type { Session } from "#schema/users/api-key.ts";
import { fetchStatus } from "../users/people.ts";
import {
  APPS,
  AUTHORIZE,
  BOARD,
  CHALLENGE,
  ELSEWHERE,
  LOCAL,
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
const { registered, asking, asked, agree, codeFor, send } = world;
const { redeeming, refreshing, tokens, granted, refusal, getTokenStatus, basic } = world;

test("[OA-4] [OA-6] [OA-12] a program registers itself, asks for access, and acts within its scopes for an hour", async () => {
  const found = await fetch(new URL("/.well-known/oauth-authorization-server", server.url));
  const issuer = server.url.origin;
  expect(await found.json()).toMatchObject({
    issuer,
    authorization_endpoint: `${issuer}/oauth2/authorize`,
    token_endpoint: `${issuer}/oauth2/token`,
    registration_endpoint: `${issuer}/oauth2/register`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
  });
  const resource = await fetch(new URL("/.well-known/oauth-protected-resource", server.url));
  expect(await resource.json()).toMatchObject({ resource: issuer, authorization_servers: [issuer] });
  expect(await asked(ada, asking())).toEqual({
    app: { id: editor, name: "Editor", icon: "", self_registered: true },
    scopes: ["workspace:read", "user:read"],
    sends_to: "a program on your own machine (127.0.0.1:49152)",
  });
  const back = await agree(ada, asking());
  expect(back.origin + back.pathname).toBe("http://127.0.0.1:49152/callback");
  expect(Object.fromEntries(back.searchParams)).toEqual({
    code: expect.stringMatching(/^[A-Za-z0-9]{43}$/),
    state: "a state & more",
    iss: issuer,
  });
  const made = await tokens(redeeming(back.searchParams.get("code") ?? ""));
  expect(made).toMatchObject({ token_type: "Bearer", expires_in: 3600, scope: SCOPES });
  const bearer = await fetch(new URL("/api/v2/users/me", server.url), {
    headers: { authorization: `Bearer ${made.access_token}` },
  });
  expect(bearer.status).toBe(200);
  // Never in a URL, which logs and histories store.
  for (const name of ["access_token", "service_session_token", "coder_session_token"]) {
    const inQuery = await fetch(new URL(`/api/v2/users/me?${name}=${made.access_token}`, server.url));
    expect([name, inQuery.status]).toEqual([name, 401]);
  }
  expect(await getTokenStatus(made.access_token, "/workspaces")).toBe(200);
  // Beyond its scopes, and never a way to a permanent key.
  expect(await getTokenStatus(made.access_token, "/users/me/gitsshkey")).toBe(403);
  const wholeTokens = await granted(asking({ scope: "coder:all" }));
  expect(await getTokenStatus(wholeTokens.access_token, "/users/me/gitsshkey")).toBe(200);
  for (const path of ["/users/me/keys/tokens", "/users/me/keys"]) {
    expect(
      await fetchStatus(
        admin.withToken(wholeTokens.access_token),
        "POST",
        path,
        path.endsWith("s/tokens") ? {} : undefined,
      ),
    ).toBe(403);
  }
  // Neither a session nor a token: ending the other sessions does not affect it, and no list of them contains it.
  const id = made.access_token.slice(0, 10);
  const sessions = await ada.get<Session[]>("/api/v2/users/me/sessions");
  expect(sessions.map((one) => one.id)).not.toContain(wholeTokens.access_token.slice(0, 10));
  expect(await fetchStatus(ada, "DELETE", `/users/me/sessions/${id}`)).toBe(404);
  expect(await fetchStatus(ada, "DELETE", "/users/me/sessions")).toBe(204);
  clock.advance(59 * MINUTE);
  expect(await getTokenStatus(made.access_token)).toBe(200);
  clock.advance(MINUTE);
  expect(await getTokenStatus(made.access_token)).toBe(401);
});

test("[OA-5] an unknown application, or a redirect URI that is not its own, redirects nowhere", async () => {
  const wrong = [
    { client_id: board.id },
    { client_id: "6ba7b810-9dad-41d1-80b4-00c04fd430c8" },
    { client_id: "editor" },
    ...ELSEWHERE.map((redirect_uri) => ({ redirect_uri })),
    { client_id: board.id, redirect_uri: `${BOARD}/..` },
    { client_id: board.id, redirect_uri: BOARD.replace("https", "http") },
    { client_id: board.id, redirect_uri: BOARD.replace(".com", ".com:444") },
  ];
  for (const one of wrong) {
    const request = asking(one);
    const query = `/oauth2-provider/authorize?${new URLSearchParams(request)}`;
    expect([one, await fetchStatus(ada, "GET", query)]).toEqual([one, 400]);
    const body = { ...request, approve: true };
    expect([one, await fetchStatus(ada, "POST", "/oauth2-provider/authorize", body)]).toEqual([one, 400]);
  }
  expect((await agree(ada, asking({ redirect_uri: "editor://back" }))).protocol).toBe("editor:");
});

test("[OA-6] [OA-8] every other error is returned to the application, and so is a denial", async () => {
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
  for (const [more, error] of mistakes) {
    const request = asking(more);
    const consent = await asked(ada, request);
    for (const to of [new URL(consent.error_redirect ?? ""), await agree(ada, request)]) {
      expect([more, Object.fromEntries(to.searchParams)]).toEqual([
        more,
        { error, error_description: expect.any(String), state: "a state & more", iss: server.url.origin },
      ]);
    }
  }
  const body = { ...asking(), approve: false };
  const { redirect_to } = await ada.post<{ redirect_to: string }>(AUTHORIZE, body);
  expect(new URL(redirect_to).searchParams.get("error")).toBe("access_denied");
  const narrow = await registered({ redirect_uris: [LOCAL], scope: "workspace:read" });
  const own = { client_id: narrow.client_id };
  expect((await asked(ada, asking({ ...own, scope: undefined }))).scopes).toEqual(["workspace:read"]);
  expect((await asked(ada, asking({ ...own, scope: "workspace:*" }))).error_redirect).toContain("invalid_scope");
});

test("[OA-7] [OA-9] only a signed-in user can approve, on a page of this server", async () => {
  const body = { ...asking(), approve: true };
  const from = (origin: string): Promise<Response> =>
    admin.withToken(undefined).fetch("POST", AUTHORIZE, body, {
      headers: { cookie: `service_session_token=${session}`, origin },
    });
  expect((await from("https://evil.example")).status).toBe(403);
  expect((await from("null")).status).toBe(403);
  expect((await from(server.url.origin)).status).toBe(200);
  expect((await admin.withToken(undefined).fetch("POST", AUTHORIZE, body)).status).toBe(401);
  const { key } = await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  expect(await fetchStatus(admin.withToken(key), "POST", "/oauth2-provider/authorize", body)).toBe(403);
  const wholeTokens = await granted(asking({ scope: "all" }));
  expect(await fetchStatus(admin.withToken(wholeTokens.access_token), "POST", "/oauth2-provider/authorize", body)).toBe(
    403,
  );
  const page = await fetch(new URL(`/oauth2/authorize?${new URLSearchParams(asking())}`, server.url));
  expect(page.status).toBe(200);
  expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  // Opening the page grants nothing.
  expect(await page.text()).not.toContain("code=");
});

test("[OA-10] a client authenticates in the header, in the form, or with PKCE, as it was registered", async () => {
  const request = asking({ client_id: board.id, redirect_uri: BOARD });
  const form = async (): Promise<Record<string, string>> => {
    const { client_id: _, ...rest } = redeeming(await codeFor(request), { redirect_uri: BOARD });
    return rest;
  };
  const made = await tokens(await form(), basic(board.id, boardSecret));
  expect(await getTokenStatus(made.access_token)).toBe(200);
  await tokens({ ...(await form()), client_id: board.id, client_secret: boardSecret });
  const wrong = [
    [{}, basic(board.id, "wrong"), "401 invalid_client"],
    [{}, basic(board.id, ""), "401 invalid_client"],
    [{ client_id: board.id }, {}, "401 invalid_client"],
    [{ client_id: board.id, client_secret: "wrong" }, {}, "401 invalid_client"],
    [{ client_id: editor, client_secret: boardSecret }, {}, "401 invalid_client"],
    [{ client_secret: boardSecret }, basic(board.id, boardSecret), "400 invalid_request"],
    [{ client_id: editor }, basic(board.id, boardSecret), "400 invalid_request"],
    [{}, {}, "400 invalid_request"],
    [{ grant_type: "password" }, basic(board.id, boardSecret), "400 unsupported_grant_type"],
  ] as const;
  const rest = await form();
  for (const [more, headers, is] of wrong) {
    expect([more, await refusal({ ...rest, ...more }, headers)]).toEqual([more, is]);
  }
  const json = await fetch(new URL("/oauth2/token", server.url), {
    method: "POST",
    body: JSON.stringify(rest),
    headers: { ...basic(board.id, boardSecret), "content-type": "application/json" },
  });
  expect([json.status, ((await json.json()) as OAuthError).error]).toEqual([400, "invalid_request"]);
  const twice = await fetch(new URL("/oauth2/token", server.url), {
    method: "POST",
    body: `${new URLSearchParams(rest)}&code=x`,
    headers: { ...basic(board.id, boardSecret), "content-type": "application/x-www-form-urlencoded" },
  });
  expect(((await twice.json()) as OAuthError).error).toBe("invalid_request");
  // None of these used up the code.
  await tokens(rest, basic(board.id, boardSecret));
});

test("[OA-11] a code is valid once, for its application, redirect URI and verifier, and for five minutes", async () => {
  const code = await codeFor();
  const other = await registered({ redirect_uris: [LOCAL] });
  for (const more of [
    { code_verifier: `${VERIFIER}x` },
    { code_verifier: CHALLENGE },
    { redirect_uri: "http://127.0.0.1:49153/callback" },
    { client_id: other.client_id },
    { code: `${code}x` },
  ] as Record<string, string>[]) {
    expect([more, await refusal(redeeming(code, more))]).toEqual([more, "400 invalid_grant"]);
  }
  const { code_verifier: _, ...without } = redeeming(code);
  expect(await refusal(without)).toBe("400 invalid_request");
  const made = await tokens(redeeming(code));
  expect(await getTokenStatus(made.access_token)).toBe(200);
  expect(await refusal(redeeming(code))).toBe("400 invalid_grant");
  expect(await getTokenStatus(made.access_token)).toBe(401);
  expect(await refusal(refreshing(made.refresh_token))).toBe("400 invalid_grant");
  const race = await codeFor();
  const both = await Promise.all([0, 1].map(() => send("/oauth2/token", redeeming(race))));
  const answers = (await Promise.all(both.map((one) => one.json()))) as Partial<Tokens>[];
  expect(answers.filter((one) => one.access_token !== undefined).length).toBeLessThanOrEqual(1);
  for (const { access_token } of answers) if (access_token) expect(await getTokenStatus(access_token)).toBe(401);
  expect(await refusal(redeeming(await codeFor(), { resource: "https://elsewhere.example" }))).toBe(
    "400 invalid_target",
  );
  // The owner has removed the redirect URI in the meantime.
  const moved = await admin.post<OAuth2App>(APPS, {
    name: "Moved",
    callback_url: LOCAL,
    token_endpoint_auth_method: "none",
  });
  const ownClient = { client_id: moved.id };
  const movedCode = await codeFor(asking(ownClient));
  await admin.put(`${APPS}/${moved.id}`, { callback_url: "http://127.0.0.1/elsewhere" });
  expect(await refusal(redeeming(movedCode, ownClient))).toBe("400 invalid_grant");
  await admin.delete(`${APPS}/${moved.id}`);
  const expiredCode = await codeFor();
  clock.advance(5 * MINUTE);
  expect(await refusal(redeeming(expiredCode))).toBe("400 invalid_grant");
});

test("[OA-8] [OA-13] [OA-16] refreshing replaces both tokens, narrows, and keeps connections open; reuse revokes everything", async () => {
  const first = await granted();
  const watch = await admin.withToken(first.access_token).socket(`/api/v2/workspaces/${seeded.workspace_id}/watch-ws`);
  const second = await tokens(refreshing(first.refresh_token));
  expect(second.access_token).not.toBe(first.access_token);
  expect([await getTokenStatus(first.access_token), await getTokenStatus(second.access_token)]).toEqual([401, 200]);
  expect(await refusal(refreshing(second.refresh_token, { scope: "workspace:*" }))).toBe("400 invalid_scope");
  expect(await refusal(refreshing(second.refresh_token, { scope: "all" }))).toBe("400 invalid_scope");
  expect(await refusal(refreshing(second.refresh_token, { client_id: board.id }))).toBe("401 invalid_client");
  const other = await registered({ redirect_uris: [LOCAL] });
  expect(await refusal(refreshing(second.refresh_token, other))).toBe("400 invalid_grant");
  const narrow = await tokens(refreshing(second.refresh_token, { scope: "user:read" }));
  expect(narrow.scope).toBe("user:read");
  expect(await getTokenStatus(narrow.access_token, "/workspaces")).toBe(403);
  const third = await tokens(refreshing(narrow.refresh_token));
  expect(third.scope).toBe(SCOPES);
  expect(await refusal(refreshing(second.refresh_token))).toBe("400 invalid_grant");
  expect(await getTokenStatus(third.access_token)).toBe(401);
  expect(await refusal(refreshing(third.refresh_token))).toBe("400 invalid_grant");
  expect((await watch.closed).code).toBe(1008);
  // Two uses of one refresh token at the same moment: at most one succeeds, and its tokens are soon revoked.
  const raced = await granted();
  const both = await Promise.all([0, 1, 2].map(() => send("/oauth2/token", refreshing(raced.refresh_token))));
  const answers = (await Promise.all(both.map((one) => one.json()))) as Partial<Tokens>[];
  const issuedTokens = answers.flatMap(({ access_token }) => access_token ?? []);
  expect(issuedTokens.length).toBeLessThanOrEqual(1);
  for (const token of [raced.access_token, ...issuedTokens]) expect(await getTokenStatus(token)).toBe(401);
});
