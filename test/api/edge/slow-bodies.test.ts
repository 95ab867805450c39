// Senders who lose their access while the server waits for the rest of a body.
import { expect, test } from "bun:test";
import type { AppError } from "#base/errors.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { UserSecret } from "#schema/users/user-secret.ts";
import { limitSlowBody } from "#src/api/files.ts";
import { toTextContent } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext } from "#test/support/seed.ts";
import { uniqueText } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { openOAuth2 } from "../oauth2/world.ts";
import { newPerson, PASSWORD } from "../users/people.ts";
import { type Answer, formatHead, isAnswered, readAnswer } from "./raw-http.ts";

const { server, clock, admin, ada, seeded, createRequest, getTokens } = await forFile(openOAuth2());

type SlowRequest = {
  readonly token: string | undefined;
  readonly path: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
};

/** Sends half of a body, then the rest after `revokeAccess`, and returns the response. */
const sendSlowly = async (
  { token = "", path, body, headers }: SlowRequest,
  revokeAccess: () => Promise<unknown> = async () => {},
): Promise<Answer | undefined> => {
  const { requests } = getContext(server);
  const allHeaders = { Host: server.url.host, "Service-Session-Token": token, "Content-Type": "application/json" };
  const half = Math.floor(body.length / 2);
  using connection = new RawConnection(server.url);
  const head = formatHead("POST", path, Object.assign(allHeaders, headers, { "Content-Length": body.length }));
  connection.send(head + body.slice(0, half));
  await until(() => requests.size === 1);
  await revokeAccess();
  clock.advance(300);
  connection.send(body.slice(half));
  return await readAnswer(connection);
};

const secretBody = (name: string) => JSON.stringify({ name, value: "a-value-to-keep", env_name: name.toUpperCase() });
const chatBody = (organization_id: string) => JSON.stringify({ organization_id, content: toTextContent("hello") });
const createToken = async (client = ada): Promise<string> =>
  (await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", {})).key;
const deleteToken = (token: string) => ada.delete(`/api/v2/users/me/keys/${token.split("-")[0]}`);

test("[HT-50] returns 401 if the sender signs out before the body has arrived", async () => {
  const { client, user } = await newPerson(admin, "leaving");
  const path = "/api/v2/users/me/secrets";
  expect((await sendSlowly({ token: client.token, path, body: secretBody("kept") }))?.status).toBe(201);
  const signOut = () => client.post("/api/v2/users/logout");
  expect((await sendSlowly({ token: client.token, path, body: secretBody("lost") }, signOut))?.status).toBe(401);
  const newClient = await admin.withToken(undefined).signIn(user.email, PASSWORD);
  expect((await newClient.get<UserSecret[]>(path)).map(({ name }) => name)).toEqual(["kept"]);
});

test("[HT-50] returns 401 if the token is deleted or the application's access revoked before the body arrives", async () => {
  const path = "/api/v2/chats";
  const body = chatBody(seeded.organization_id);
  const token = await createToken();
  expect((await sendSlowly({ token, path, body }, () => deleteToken(token)))?.status).toBe(401);
  const { access_token } = await getTokens(createRequest({ scope: "chat:create" }));
  const revoke = async () => {
    const [grant] = await ada.get<{ id: string }[]>("/api/v2/users/me/oauth2-grants");
    await ada.delete(`/api/v2/users/me/oauth2-grants/${grant?.id}`);
  };
  expect((await sendSlowly({ token: access_token, path, body }, revoke))?.status).toBe(401);
  expect(await ada.get<Chat[]>(path)).toEqual([]);
});

test("[HT-50] ignores memberships and roles that end before the body has arrived", async () => {
  const { client, user } = await newPerson(admin, "changing");
  const organization = `/api/v2/organizations/${user.organization_ids[0]}`;
  const member = `${organization}/members/${user.id}`;
  await admin.put(`${member}/roles`, { roles: ["organization-admin"] });
  const mcpServerBody = (slug: string) => JSON.stringify({ slug, url: "https://mcp.example.com/mcp" });
  const mcpRequest = { token: client.token, path: `${organization}/mcp-servers` };
  expect((await sendSlowly({ ...mcpRequest, body: mcpServerBody("kept") }))?.status).toBe(201);
  const demote = () => admin.put(`${member}/roles`, { roles: [] });
  const demoted = await sendSlowly({ ...mcpRequest, body: mcpServerBody("lost") }, demote);
  const remove = () => admin.delete(member);
  const chatRequest = { token: client.token, path: "/api/v2/chats", body: chatBody(user.organization_ids[0] ?? "") };
  const removed = await sendSlowly(chatRequest, remove);
  // New requests get the same statuses.
  const laterResponses = await Promise.all([
    client.fetch("POST", mcpRequest.path, JSON.parse(mcpServerBody("late"))),
    client.fetch("POST", chatRequest.path, JSON.parse(chatRequest.body)),
  ]);
  expect(demoted?.status).toBe(403);
  expect(laterResponses.map(({ status }) => status)).toContain(removed?.status as number);
  expect(removed?.status).toBeGreaterThanOrEqual(403);
});

test("[HT-50] accepts uploads only from senders who still have access at the end", async () => {
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

/** Opens uploads of a file that stop after a few words: more than one person may have on a machine of any size. */
const stallUploads = async (name: string) => {
  const { client, user } = await newPerson(admin, name);
  const head = formatHead("POST", `/api/v2/chats/files?organization=${user.organization_ids[0]}`, {
    Host: server.url.host,
    "Service-Session-Token": client.token ?? "",
    "Content-Type": "text/plain",
    "Content-Disposition": 'attachment; filename="notes.txt"',
    "Content-Length": 9_000_000,
  });
  const connections = Array.from({ length: 70 }, () => new RawConnection(server.url));
  for (const connection of connections) connection.send(`${head}first words`);
  return connections;
};

const uploadFile = async (name: string): Promise<number> => {
  const { client, user } = await newPerson(admin, name);
  const response = await fetch(new URL(`/api/v2/chats/files?organization=${user.organization_ids[0]}`, server.url), {
    method: "POST",
    headers: {
      "Service-Session-Token": client.token ?? "",
      "Content-Type": "text/plain",
      "Content-Disposition": 'attachment; filename="notes.txt"',
    },
    body: "x".repeat(9_000_000),
  });
  return response.status;
};

test("[HT-49] limits the memory for people's unfinished files, so that others can upload, and ends slow ones", async () => {
  const stalled: RawConnection[] = [];
  for (const name of ["hoarder", "helper"]) {
    const connections = await stallUploads(name);
    stalled.push(...connections);
    const rejected = await Promise.race(connections.map(readAnswer));
    expect([rejected?.status, rejected?.text]).toEqual([503, expect.stringContaining("Too many large request bodies")]);
  }
  expect(await uploadFile("sharer")).toBe(201);
  await until(() => {
    clock.advance(1_000);
    return stalled.every(isAnswered);
  });
  const texts = stalled.map(({ received }) => received);
  expect(texts.some((text) => text.includes("The request body arrives too slowly"))).toBe(true);
  expect(texts.filter((text) => !/ 408 .* too slowly|Too many large request bodies/s.test(text))).toEqual([]);
  for (const connection of stalled) connection[Symbol.dispose]();
});

test("[HT-49] a slow line with pauses may take its time, and a sender that stops may not", async () => {
  const ownClock = new ManualClock();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const request = new Request("http://localhost/", { method: "POST", body: readable });
  const reservation = { isShort: () => true, release: () => {} };
  const pieces = limitSlowBody({ clock: ownClock }, request, 10_000_000, reservation);
  for (let seconds = 0; seconds < 120; seconds += 8) {
    const [{ value }] = await Promise.all([pieces.next(), writer.write(new Uint8Array(32 * 1024))]);
    expect(value?.byteLength).toBe(32 * 1024);
    ownClock.advance(8_000);
  }
  const last = pieces.next().catch((error: AppError) => error.kind);
  ownClock.advance(60_000);
  expect(await last).toBe("timeout");
});
