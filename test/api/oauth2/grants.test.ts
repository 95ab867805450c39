// How the access that people have given to an application ends.
import { afterAll, expect, test } from "bun:test";
import type { OAuth2Grant } from "#schema/oauth2/grant.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import { LOCAL, openOAuth2, SCOPES, type Tokens } from "./world.ts";

const GRANTS = "/api/v2/users/me/oauth2-grants";

const world = await openOAuth2();
afterAll(() => world[Symbol.asyncDispose]());
const { admin, seeded, ada, bob, editor, board } = world;
const { registered, asking, codeFor, send } = world;
const { redeeming, refreshing, tokens, granted, refusal, getTokenStatus } = world;

test("[OA-15] [OA-16] users see their grants and revoke them, including open connections", async () => {
  for (const { id } of await ada.get<OAuth2Grant[]>(GRANTS)) await ada.delete(`${GRANTS}/${id}`);
  const made = await granted();
  await codeFor();
  const grants = await ada.get<OAuth2Grant[]>(GRANTS);
  expect(grants).toEqual([
    expect.objectContaining({
      id: made.access_token.slice(0, 10),
      app: { id: editor, name: "Editor", icon: "", self_registered: true },
      scopes: SCOPES.split(" "),
    }),
  ]);
  const watch = await admin.withToken(made.access_token).socket(`/api/v2/workspaces/${seeded.workspace_id}/watch-ws`);
  const id = grants[0]?.id ?? "";
  expect(await fetchStatus(bob, "DELETE", `/users/me/oauth2-grants/${id}`)).toBe(404);
  expect(await getTokenStatus(made.access_token)).toBe(200);
  const began = performance.now();
  await ada.delete(`${GRANTS}/${id}`);
  expect((await watch.closed).code).toBe(1008);
  expect(performance.now() - began).toBeLessThan(1000);
  expect(await getTokenStatus(made.access_token)).toBe(401);
  expect(await refusal(refreshing(made.refresh_token))).toBe("400 invalid_grant");
  // Applications revoke tokens of either kind, and only their own.
  const other = await registered({ redirect_uris: [LOCAL] });
  for (const name of ["access_token", "refresh_token"] as const) {
    const tokens = await granted();
    const form = { token: tokens[name], client_id: editor };
    expect((await send("/oauth2/revoke", { ...form, client_id: other.client_id })).status).toBe(200);
    expect((await send("/oauth2/revoke", { ...form, client_id: board.id })).status).toBe(401);
    expect(await getTokenStatus(tokens.access_token)).toBe(200);
    expect((await send("/oauth2/revoke", form)).status).toBe(200);
    expect(await getTokenStatus(tokens.access_token)).toBe(401);
  }
  expect((await send("/oauth2/revoke", { token: "nothing", client_id: editor })).status).toBe(200);
});

test("[OA-15] revoking a grant also ends the codes that the application has not redeemed yet, and no others", async () => {
  const revocations: ((made: Tokens) => Promise<unknown>)[] = [
    ({ access_token }) => ada.delete(`${GRANTS}/${access_token.slice(0, 10)}`),
    ({ refresh_token }) => send("/oauth2/revoke", { token: refresh_token, client_id: editor }),
  ];
  for (const revoke of revocations) {
    const other = await granted();
    const made = await granted();
    const [pending, ofBob] = [await codeFor(), await codeFor(asking(), bob)];
    await revoke(made);
    expect(await refusal(redeeming(pending))).toBe("400 invalid_grant");
    expect(await getTokenStatus(other.access_token)).toBe(200);
    expect(await getTokenStatus((await tokens(redeeming(ofBob))).access_token)).toBe(200);
  }
});

test("[OA-14] tokens stop working when their user is suspended, deleted, or has a new password", async () => {
  const { client: gail, user: suspended } = await newPerson(admin, "gail");
  const made = await granted(asking(), gail);
  const pending = await codeFor(asking(), gail);
  for (const status of ["suspend", "activate"]) {
    await admin.put(`/api/v2/users/${suspended.id}/status/${status}`);
    expect(await getTokenStatus(made.access_token)).toBe(401);
    expect(await refusal(refreshing(made.refresh_token))).toBe("400 invalid_grant");
    expect(await refusal(redeeming(pending))).toBe("400 invalid_grant");
  }
  const bobsTokens = await granted(asking(), bob);
  const code = await codeFor(asking(), bob);
  const change = { old_password: PASSWORD, password: "another-long-enough-secret" };
  expect(await fetchStatus(bob, "PUT", "/users/me/password", change)).toBe(204);
  expect(await getTokenStatus(bobsTokens.access_token)).toBe(401);
  expect(await refusal(refreshing(bobsTokens.refresh_token))).toBe("400 invalid_grant");
  expect(await refusal(redeeming(code))).toBe("400 invalid_grant");
  const { client: eve, user } = await newPerson(admin, "eve");
  const hers = await granted(asking(), eve);
  await admin.delete(`/api/v2/users/${user.id}`);
  expect(await getTokenStatus(hers.access_token)).toBe(401);
  expect(await refusal(refreshing(hers.refresh_token))).toBe("400 invalid_grant");
  // Expired manually, as for any key: a key expired in this way stays invalid.
  const expired = await granted();
  await ada.put(`/api/v2/users/me/keys/${expired.access_token.slice(0, 10)}/expire`);
  expect(await refusal(refreshing(expired.refresh_token))).toBe("400 invalid_grant");
});
