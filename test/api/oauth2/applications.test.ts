// OAuth applications that owners create, with redirect URIs and secrets, and applications that register themselves.
import { afterAll, expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import type { AuditLogs } from "#schema/audit.ts";
import type { OAuth2App } from "#schema/oauth2/app.ts";
import type { OAuth2Grant } from "#schema/oauth2/grant.ts";
import { getContext } from "#test/support/seed.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { fetchStatus } from "../users/people.ts";
import {
  APPS,
  BOARD_REDIRECT_URI,
  INVALID_REDIRECT_URIS,
  LOCAL_REDIRECT_URI,
  type OAuthError,
  openOAuth2,
  PROGRAM_REDIRECT_URIS,
  type RegisteredClient,
  type Tokens,
} from "./world.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const GRANTS = "/api/v2/users/me/oauth2-grants";

const world = await openOAuth2();
afterAll(() => world[Symbol.asyncDispose]());
const { clock, server, admin, seeded, ada, board, boardSecret } = world;
const {
  register,
  registerClient,
  createRequest,
  getCode,
  send,
  redeemForm,
  refreshForm,
  getTokens,
  getRejection,
  getTokenStatus,
} = world;

test("[OA-1] [OA-2] [OA-3] [OA-5] owners create applications with valid redirect URIs and secrets that appear once", async () => {
  expect(await fetchStatus(ada, "GET", "/oauth2-provider/apps")).toBe(403);
  expect(await fetchStatus(ada, "GET", `/oauth2-provider/apps/${board.id}`)).toBe(403);
  const getCreateStatus = (body: object): Promise<number> => fetchStatus(admin, "POST", "/oauth2-provider/apps", body);
  expect(await getCreateStatus({ name: "board", callback_url: BOARD_REDIRECT_URI })).toBe(409);
  expect(await getCreateStatus({ name: "Bad", callback_url: BOARD_REDIRECT_URI, scopes: ["everything"] })).toBe(400);
  for (const callback_url of INVALID_REDIRECT_URIS) {
    expect([callback_url, await getCreateStatus({ name: "Bad", callback_url })]).toEqual([callback_url, 400]);
  }
  const cards = await admin.post<OAuth2App>(APPS, { name: "Cards", callback_url: "https://cards.example.com/" });
  const path = `${APPS}/${cards.id}`;
  const changed = await admin.put<OAuth2App>(path, { name: "Maps", scopes: ["workspace:read"] });
  expect(changed).toMatchObject({
    name: "Maps",
    callback_url: "https://cards.example.com/",
    scopes: ["workspace:read"],
  });
  type NewSecret = { id: string; client_secret_full: string };
  const secrets = [await admin.post<NewSecret>(`${path}/secrets`), await admin.post<NewSecret>(`${path}/secrets`)];
  const [firstSecret, secondSecret] = secrets as [NewSecret, NewSecret];
  const listed = await admin.get<{ client_secret_truncated: string }[]>(`${path}/secrets`);
  expect(listed.map((secret) => secret.client_secret_truncated).sort()).toEqual(
    secrets.map(({ client_secret_full }) => client_secret_full.slice(-6)).sort(),
  );
  const request = createRequest({ client_id: cards.id, redirect_uri: "https://cards.example.com/", scope: undefined });
  const redeem = async ({ client_secret_full }: NewSecret): Promise<Response> => {
    const form = redeemForm(await getCode(request), {
      redirect_uri: "https://cards.example.com/",
      client_id: cards.id,
    });
    return send("/oauth2/token", { ...form, client_secret: client_secret_full });
  };
  await admin.delete(`${path}/secrets/${firstSecret.id}`);
  expect((await redeem(firstSecret)).status).toBe(401);
  const tokens = (await (await redeem(secondSecret)).json()) as Tokens;
  expect(await getTokenStatus(tokens.access_token, "/workspaces")).toBe(200);
  // A deleted application loses all access.
  const watch = await admin.withToken(tokens.access_token).socket(`/api/v2/workspaces/${seeded.workspace_id}/watch-ws`);
  // The application is deleted while a person approves: the person gets an invalid code or an error.
  const approvals = [0, 1, 2, 3].map(() =>
    fetchStatus(ada, "POST", "/oauth2-provider/authorize", { ...request, approve: true }),
  );
  await admin.delete(path);
  for (const status of await Promise.all(approvals)) expect([200, 400, 409]).toContain(status);
  expect((await watch.closed).code).toBe(1008);
  expect(await getTokenStatus(tokens.access_token)).toBe(401);
  expect((await redeem(secondSecret).catch(() => undefined))?.status).toBeUndefined();
  const { audit_logs } = await admin.get<Static<typeof AuditLogs>>(
    `/api/v2/audit?q=${encodeURIComponent("resource_type:oauth2_provider_app")}&limit=50`,
  );
  expect(audit_logs.map(({ action }) => action)).toEqual(
    expect.arrayContaining(["create", "write", "delete", "register"]),
  );
  const texts = (await readStoredTexts(server.directory)).join("\n");
  for (const text of [
    secondSecret.client_secret_full,
    boardSecret,
    tokens.refresh_token,
    tokens.access_token.slice(11),
  ]) {
    expect(texts).not.toContain(text);
  }
});

test("[OA-4] [OA-14] limits self-registered programs, and removes unused ones", async () => {
  clock.advance(MINUTE);
  const getError = async (body: object): Promise<string> => {
    const response = await register(body);
    return `${response.status} ${((await response.json()) as OAuthError).error}`;
  };
  expect(await getError({ redirect_uris: ["https://evil.example/"] })).toBe("400 invalid_redirect_uri");
  expect(await getError({ redirect_uris: [LOCAL_REDIRECT_URI, "web+evil://x/cb"] })).toBe("400 invalid_redirect_uri");
  expect(await getError({ redirect_uris: ["microsoft-edge:https://evil.example/cb"] })).toBe(
    "400 invalid_redirect_uri",
  );
  expect(await getError({ client_name: "None" })).toBe("400 invalid_redirect_uri");
  expect(await getError({ redirect_uris: [LOCAL_REDIRECT_URI], grant_types: ["password"] })).toBe(
    "400 invalid_client_metadata",
  );
  expect(await getError({ redirect_uris: [LOCAL_REDIRECT_URI], token_endpoint_auth_method: "tls" })).toBe(
    "400 invalid_client_metadata",
  );
  expect(await getError({ redirect_uris: [LOCAL_REDIRECT_URI], scope: "everything" })).toBe(
    "400 invalid_client_metadata",
  );
  const secret = await (await register({ redirect_uris: [LOCAL_REDIRECT_URI], client_name: "With\nsecret" })).json();
  expect(secret).toMatchObject({ client_name: "With secret", token_endpoint_auth_method: "client_secret_basic" });
  expect((secret as RegisteredClient).client_secret).toHaveLength(43);
  expect((await register({ redirect_uris: PROGRAM_REDIRECT_URIS })).status).toBe(201);
  expect((await register({ redirect_uris: [LOCAL_REDIRECT_URI] })).status).toBe(201);
  expect((await register({ redirect_uris: [LOCAL_REDIRECT_URI] })).status).toBe(429);
  // Ages the rows in the store, because advancing the clock by a month would run a million other timers.
  const { store } = getContext(server);
  const ageRows = (sql: string, ms: number) => store.commit([{ sql, rows: [[clock.now() - ms]] }]);
  await getTokens();
  await ageRows("update oauth2_apps set updated_at = ?1", 31 * DAY);
  clock.advance(MINUTE);
  await registerClient({ redirect_uris: [LOCAL_REDIRECT_URI], client_name: "New" });
  const names = (await admin.get<OAuth2App[]>(APPS)).map(({ name }) => name);
  expect(names).toEqual(["Board", "Editor", "New"]);
  const expiredTokens = await getTokens();
  await ageRows("update oauth2_grants set refresh_expires_at = ?1", 0);
  expect(await getRejection(refreshForm(expiredTokens.refresh_token))).toBe("400 invalid_grant");
  expect(await ada.get<OAuth2Grant[]>(GRANTS)).toEqual([]);
});
