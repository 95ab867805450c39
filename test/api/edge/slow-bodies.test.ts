// Senders who lose their rights while they hold back the rest of a body.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { UserSecret } from "#schema/users/user-secret.ts";
import { toTextContent } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext } from "#test/support/seed.ts";
import { uniqueText } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { openOAuth2 } from "../oauth2/world.ts";
import { newPerson, PASSWORD } from "../users/people.ts";
import { type Answer, formatHead, readAnswer } from "./raw-http.ts";

const { server, clock, admin, ada, seeded, asking, granted } = await forFile(openOAuth2());

type SlowRequest = {
  readonly token: string | undefined;
  readonly path: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
};

/** Sends half of a body, and the rest a moment after `lose`. Returns the answer. */
const sendSlowly = async (
  { token = "", path, body, headers }: SlowRequest,
  lose: () => Promise<unknown> = async () => {},
): Promise<Answer | undefined> => {
  const { requests } = getContext(server);
  const allHeaders = { Host: server.url.host, "Service-Session-Token": token, "Content-Type": "application/json" };
  const half = Math.floor(body.length / 2);
  using connection = new RawConnection(server.url);
  const head = formatHead("POST", path, Object.assign(allHeaders, headers, { "Content-Length": body.length }));
  connection.send(head + body.slice(0, half));
  await until(() => requests.size === 1);
  await lose();
  clock.advance(300);
  connection.send(body.slice(half));
  return await readAnswer(connection);
};

const secret = (name: string) => JSON.stringify({ name, value: "a-value-to-keep", env_name: name.toUpperCase() });
const chat = (organization_id: string) => JSON.stringify({ organization_id, content: toTextContent("hello") });
const createToken = async (client = ada): Promise<string> =>
  (await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", {})).key;
const deleteToken = (token: string) => ada.delete(`/api/v2/users/me/keys/${token.split("-")[0]}`);

test("[HT-50] a request is refused with 401 if its sender signs out before the body has arrived", async () => {
  const { client, user } = await newPerson(admin, "leaving");
  const path = "/api/v2/users/me/secrets";
  expect((await sendSlowly({ token: client.token, path, body: secret("kept") }))?.status).toBe(201);
  const signOut = () => client.post("/api/v2/users/logout");
  expect((await sendSlowly({ token: client.token, path, body: secret("lost") }, signOut))?.status).toBe(401);
  const newClient = await admin.withToken(undefined).signIn(user.email, PASSWORD);
  expect((await newClient.get<UserSecret[]>(path)).map(({ name }) => name)).toEqual(["kept"]);
});

test("[HT-50] a request is refused with 401 if its token is deleted or its application's access revoked before the body has arrived", async () => {
  const path = "/api/v2/chats";
  const body = chat(seeded.organization_id);
  const token = await createToken();
  expect((await sendSlowly({ token, path, body }, () => deleteToken(token)))?.status).toBe(401);
  const { access_token } = await granted(asking({ scope: "chat:create" }));
  const revoke = async () => {
    const [grant] = await ada.get<{ id: string }[]>("/api/v2/users/me/oauth2-grants");
    await ada.delete(`/api/v2/users/me/oauth2-grants/${grant?.id}`);
  };
  expect((await sendSlowly({ token: access_token, path, body }, revoke))?.status).toBe(401);
  expect(await ada.get<Chat[]>(path)).toEqual([]);
});

test("[HT-50] memberships and roles that end before the body has arrived no longer count", async () => {
  const { client, user } = await newPerson(admin, "changing");
  const organization = `/api/v2/organizations/${user.organization_ids[0]}`;
  const member = `${organization}/members/${user.id}`;
  await admin.put(`${member}/roles`, { roles: ["organization-admin"] });
  const server_of = (slug: string) => JSON.stringify({ slug, url: "https://mcp.example.com/mcp" });
  const servers = { token: client.token, path: `${organization}/mcp-servers` };
  expect((await sendSlowly({ ...servers, body: server_of("kept") }))?.status).toBe(201);
  const demote = () => admin.put(`${member}/roles`, { roles: [] });
  const demoted = await sendSlowly({ ...servers, body: server_of("lost") }, demote);
  const remove = () => admin.delete(member);
  const chats = { token: client.token, path: "/api/v2/chats", body: chat(user.organization_ids[0] ?? "") };
  const removed = await sendSlowly(chats, remove);
  // As for requests that begin now.
  const now = await Promise.all([
    client.fetch("POST", servers.path, JSON.parse(server_of("late"))),
    client.fetch("POST", chats.path, JSON.parse(chats.body)),
  ]);
  expect(demoted?.status).toBe(403);
  expect(now.map(({ status }) => status)).toContain(removed?.status as number);
  expect(removed?.status).toBeGreaterThanOrEqual(403);
});

test("[HT-50] uploads count only with the rights at their end", async () => {
  const { client, user } = await newPerson(admin, "uploader", ["template-admin"]);
  const archive = { token: client.token, path: "/api/v2/files", headers: { "Content-Type": "application/x-tar" } };
  expect((await sendSlowly({ ...archive, body: uniqueText() }))?.status).toBe(201);
  const demote = () => admin.put(`/api/v2/users/${user.id}/roles`, { roles: [] });
  expect((await sendSlowly({ ...archive, body: uniqueText() }, demote))?.status).toBe(403);
  const token = await createToken();
  const file = {
    token,
    path: `/api/v2/chats/files?organization=${seeded.organization_id}`,
    headers: { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="notes.txt"' },
    body: "some notes for the chat",
  };
  expect((await sendSlowly(file))?.status).toBe(201);
  expect((await sendSlowly(file, () => deleteToken(token)))?.status).toBe(401);
});

test("[HT-49] a person's unfinished files are refused beyond their share of the memory, and other people can upload", async () => {
  const { client, user } = await newPerson(admin, "hoarder");
  const { client: sharer } = await newPerson(admin, "sharer");
  const path = `/api/v2/chats/files?organization=${user.organization_ids[0]}`;
  const toHead = (token = "") =>
    formatHead("POST", path, {
      Host: server.url.host,
      "Service-Session-Token": token,
      "Content-Type": "text/plain",
      "Content-Disposition": 'attachment; filename="notes.txt"',
      "Content-Length": 9_000_000,
    });
  // More than one person may have on a machine of any size.
  const stalled = Array.from({ length: 70 }, () => new RawConnection(server.url));
  for (const one of stalled) one.send(`${toHead(client.token)}first words`);
  const refused = await Promise.race(stalled.map(readAnswer));
  expect([refused?.status, refused?.text]).toEqual([503, expect.stringContaining("Too many large request bodies")]);
  using other = new RawConnection(server.url);
  other.send(toHead(sharer.token));
  other.send("x".repeat(9_000_000));
  expect((await readAnswer(other))?.status).toBe(201);
  for (const one of stalled) one[Symbol.dispose]();
});
