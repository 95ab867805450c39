// Streams end when the key that opened them is revoked (RELIABILITY check 30).
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

const HOUR = 3_600_000;

const { server, admin } = await serverForFile();

/** Creates a workspace's owner with a token, and opens every kind of stream with the token. */
const openStreams = async (options: { lifetime?: number } = {}, testServer = server, client = admin) => {
  const seeded = await seedAgent(testServer);
  const owner = client.withToken(seeded.owner_token);
  const { key } = await owner.post<{ key: string }>("/api/v2/users/me/keys/tokens", options);
  const tokenClient = owner.withToken(key);
  const paths = [`workspaces/${seeded.workspace_id}/watch-ws`, `workspaceagents/${seeded.agent_id}/logs?follow`];
  const sockets = await Promise.all(paths.map((path) => tokenClient.socket(`/api/v2/${path}`)));
  const events = await tokenClient.fetch("GET", `/api/v2/workspaces/${seeded.workspace_id}/watch`);
  expect(events.status).toBe(200);
  return { owner, owner_id: seeded.owner_id, id: key.slice(0, 10), sockets, events };
};
type OpenStreams = Awaited<ReturnType<typeof openStreams>>;

describeInProcess("[ID-10] every stream of a key ends", () => {
  test.each<[string, (opened: OpenStreams) => Promise<unknown>]>([
    ["when it is deleted", ({ owner, id }) => owner.delete(`/api/v2/users/me/keys/${id}`)],
    ["when its user is suspended", ({ owner_id }) => admin.put(`/api/v2/users/${owner_id}/status/suspend`)],
    ["when its user expires it", ({ owner, id }) => owner.put(`/api/v2/users/me/keys/${id}/expire`)],
  ])("%s", async (_when, revoke) => {
    const opened = await openStreams();
    await revoke(opened);
    const closed = await Promise.all(opened.sockets.map((socket) => socket.closed));
    expect(closed.map(({ code }) => code)).toEqual([1008, 1008]);
    // The event stream must end; otherwise reading it would wait forever.
    expect(await opened.events.text()).toContain("event: ping");
  });

  test("when it expires, and not before", async () => {
    const clock = new ManualClock();
    await using timedServer = await startTestServer({ clock });
    const clockedAdmin = await new Client(timedServer.url).signIn(ADMIN.email, ADMIN.password);
    const opened = await openStreams({ lifetime: 3 * HOUR * 1e6 }, timedServer, clockedAdmin);
    clock.advance(2 * HOUR);
    expect(
      await Promise.race([...opened.sockets.map(({ closed }) => closed), opened.owner.get("/api/v2/users/me")]),
    ).toHaveProperty("username");
    clock.advance(HOUR);
    const closed = await Promise.all(opened.sockets.map((socket) => socket.closed));
    expect(closed.map(({ code }) => code)).toEqual([1008, 1008]);
    expect(await opened.events.text()).toContain("event: ping");
  });
});
