// Revoking and losing the access that people have granted to applications.
import { afterAll, expect, test } from "bun:test";
import type { OAuth2Grant } from "#schema/oauth2/grant.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import { LOCAL_REDIRECT_URI, openOAuth2, SCOPES, type Tokens } from "./world.ts";

const GRANTS = "/api/v2/users/me/oauth2-grants";

const world = await openOAuth2();
afterAll(() => world[Symbol.asyncDispose]());
const { admin, seeded, ada, bob, editor, board } = world;
const { registerClient, createRequest, getCode, send } = world;
const { redeemForm, refreshForm, requestTokens, getTokens, getRejection, getTokenStatus } = world;

test("[OA-15] [OA-16] users see their grants; revoking one also ends open connections", async () => {
  for (const { id } of await ada.get<OAuth2Grant[]>(GRANTS)) await ada.delete(`${GRANTS}/${id}`);
  const grantedTokens = await getTokens();
  await getCode();
  const grants = await ada.get<OAuth2Grant[]>(GRANTS);
  expect(grants).toEqual([
    expect.objectContaining({
      id: grantedTokens.access_token.slice(0, 10),
      app: { id: editor, name: "Editor", icon: "", self_registered: true },
      scopes: SCOPES.split(" "),
    }),
  ]);
  const watch = await admin
    .withToken(grantedTokens.access_token)
    .socket(`/api/v2/workspaces/${seeded.workspace_id}/watch-ws`);
  const id = grants[0]?.id ?? "";
  expect(await fetchStatus(bob, "DELETE", `/users/me/oauth2-grants/${id}`)).toBe(404);
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(200);
  const startedMs = performance.now();
  await ada.delete(`${GRANTS}/${id}`);
  expect((await watch.closed).code).toBe(1008);
  expect(performance.now() - startedMs).toBeLessThan(1000);
  expect(await getTokenStatus(grantedTokens.access_token)).toBe(401);
  expect(await getRejection(refreshForm(grantedTokens.refresh_token))).toBe("400 invalid_grant");
  // Applications revoke tokens of either kind, and only their own.
  const otherProgram = await registerClient({ redirect_uris: [LOCAL_REDIRECT_URI] });
  for (const name of ["access_token", "refresh_token"] as const) {
    const tokens = await getTokens();
    const form = { token: tokens[name], client_id: editor };
    expect((await send("/oauth2/revoke", { ...form, client_id: otherProgram.client_id })).status).toBe(200);
    expect((await send("/oauth2/revoke", { ...form, client_id: board.id })).status).toBe(401);
    expect(await getTokenStatus(tokens.access_token)).toBe(200);
    expect((await send("/oauth2/revoke", form)).status).toBe(200);
    expect(await getTokenStatus(tokens.access_token)).toBe(401);
  }
  expect((await send("/oauth2/revoke", { token: "nothing", client_id: editor })).status).toBe(200);
});

test("[OA-15] revoking a grant also invalidates the application's unredeemed codes, and nothing else", async () => {
  const revocations: ((grantedTokens: Tokens) => Promise<unknown>)[] = [
    ({ access_token }) => ada.delete(`${GRANTS}/${access_token.slice(0, 10)}`),
    ({ refresh_token }) => send("/oauth2/revoke", { token: refresh_token, client_id: editor }),
  ];
  for (const revoke of revocations) {
    const otherTokens = await getTokens();
    const grantedTokens = await getTokens();
    const [pendingCode, bobsCode] = [await getCode(), await getCode(createRequest(), bob)];
    await revoke(grantedTokens);
    expect(await getRejection(redeemForm(pendingCode))).toBe("400 invalid_grant");
    expect(await getTokenStatus(otherTokens.access_token)).toBe(200);
    expect(await getTokenStatus((await requestTokens(redeemForm(bobsCode))).access_token)).toBe(200);
  }
});

test("[OA-14] tokens stop working when their user is suspended, deleted, or has a new password", async () => {
  const { client: gail, user: suspended } = await newPerson(admin, "gail");
  const grantedTokens = await getTokens(createRequest(), gail);
  const pending = await getCode(createRequest(), gail);
  for (const status of ["suspend", "activate"]) {
    await admin.put(`/api/v2/users/${suspended.id}/status/${status}`);
    expect(await getTokenStatus(grantedTokens.access_token)).toBe(401);
    expect(await getRejection(refreshForm(grantedTokens.refresh_token))).toBe("400 invalid_grant");
    expect(await getRejection(redeemForm(pending))).toBe("400 invalid_grant");
  }
  const bobsTokens = await getTokens(createRequest(), bob);
  const code = await getCode(createRequest(), bob);
  const change = { old_password: PASSWORD, password: "another-long-enough-secret" };
  expect(await fetchStatus(bob, "PUT", "/users/me/password", change)).toBe(204);
  expect(await getTokenStatus(bobsTokens.access_token)).toBe(401);
  expect(await getRejection(refreshForm(bobsTokens.refresh_token))).toBe("400 invalid_grant");
  expect(await getRejection(redeemForm(code))).toBe("400 invalid_grant");
  const { client: eve, user } = await newPerson(admin, "eve");
  const evesTokens = await getTokens(createRequest(), eve);
  await admin.delete(`/api/v2/users/${user.id}`);
  expect(await getTokenStatus(evesTokens.access_token)).toBe(401);
  expect(await getRejection(refreshForm(evesTokens.refresh_token))).toBe("400 invalid_grant");
  // A key that its user expires stays invalid.
  const expired = await getTokens();
  await ada.put(`/api/v2/users/me/keys/${expired.access_token.slice(0, 10)}/expire`);
  expect(await getRejection(refreshForm(expired.refresh_token))).toBe("400 invalid_grant");
});
