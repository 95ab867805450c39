// The server's own entries in the connection log: terminals and apps that it forwards to a real daemon.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { ConnectionLog } from "#schema/connections.ts";
import { AppVisits } from "#src/api/applications/visits.ts";
import type { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";
import { TestTerminal } from "../agents/reach.ts";
import { startAppWorld } from "../applications/app-world.ts";

let world: Awaited<ReturnType<typeof startAppWorld>>;
let admin: Client;
beforeAll(async () => {
  world = await startAppWorld({
    apps: (port) => [{ slug: "web", url: `http://localhost:${port}`, share: "public" }],
  });
  admin = world.shared.clients["site owner"];
});
afterAll(async () => await world[Symbol.asyncDispose]());

const listConnections = async (q: string): Promise<ConnectionLog[]> =>
  (await admin.get<{ connection_logs: ConnectionLog[] }>(`/api/v2/connectionlog?${new URLSearchParams({ q })}`))
    .connection_logs;

test("[CG-1] logs a terminal as ongoing while a client is attached, with the user and the reason of its end", async () => {
  const { owner } = world;
  const path = (subpath: string): string => `/api/v2/workspaceagents/${world.agent_id}/${subpath}`;
  using terminal = await TestTerminal.open({ owner, path }, { id: uuid() });
  await until(async () => (await listConnections("type:reconnecting_pty status:ongoing")).length === 1);
  terminal.sendInput({ data: "exit\n" });
  await terminal.socket.closed;
  await until(async () => (await listConnections("type:reconnecting_pty status:completed")).length === 1);
  const [entry] = await listConnections("type:reconnecting_pty");
  expect(entry).toMatchObject({
    user: { username: "ada" },
    workspace_owner_username: "ada",
    workspace_name: "dev",
    agent_name: "dev",
    disconnect_reason: "the command has ended",
    ip: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
  });
  expect(await listConnections("type:reconnecting_pty username:ada")).toHaveLength(1);
});

test("[CG-3] logs one visit per browser, another for an anonymous visitor, and none for a rejected request", async () => {
  const request = { token: world.token, headers: { "user-agent": "Browser/1" } };
  for (const subpath of ["/", "/a", "/b"]) await (await world.get(world.path("web", subpath), request)).text();
  const anonymousRequest = { headers: { "user-agent": "Stranger/1" } };
  for (const subpath of ["/", "/c"]) await (await world.get(world.path("web", subpath), anonymousRequest)).text();
  await (await world.get(world.path("none"), request)).text();
  // In a cluster, another node may write the entry.
  const entries = await until(async () => {
    const logs = await listConnections("type:workspace_app");
    return logs.length > 1 && logs;
  });
  expect(entries.map(({ user, user_agent, target }) => [user?.username, user_agent, target]).reverse()).toEqual([
    ["ada", "Browser/1", "web"],
    [undefined, "Stranger/1", "web"],
  ]);
  expect(entries.at(-1)?.web_info).toMatchObject({ slug_or_port: "web", user: { username: "ada" }, status_code: 200 });
  await (await world.get(world.path(String(world.app.port)), request)).text();
  const [port] = await until(async () => {
    const logs = await listConnections("type:port_forwarding");
    return logs.length > 0 && logs;
  });
  expect([port?.target, port?.user?.username]).toEqual([String(world.app.port), "ada"]);
});

test("[CG-3] ends a visit 15 minutes after its last request; the next request starts a new one", () => {
  const clock = new ManualClock();
  const events: string[] = [];
  const recordBegin = ({ target }: { target: string }) => {
    const number = events.push(`${target} begins`);
    return (_reason: string, { at }: { at: number }) => void events.push(`${number} ends at ${at - startedAt}`);
  };
  const startedAt = clock.now();
  const visits = new AppVisits({ clock, connections: { begin: recordBegin } } as never);
  const app = { agent_id: "a", slug: "web", port: 80, isPort: false } as never;
  const visitor = { user_id: "u", ip: "192.0.2.1", user_agent: "B" };
  expect(visits.recordTraffic(app, visitor)).toBe(false);
  visits.recordResponse(app, visitor, 200);
  clock.advance(14 * 60_000);
  expect(visits.recordTraffic(app, visitor)).toBe(true);
  clock.advance(15 * 60_000);
  expect(events).toEqual(["web begins", `1 ends at ${14 * 60_000}`]);
  visits.recordResponse(app, visitor, 200);
  visits.recordResponse(app, { ...visitor, user_id: null, user_agent: "one" } as never, 200);
  visits.recordResponse(app, { ...visitor, user_id: null, user_agent: "two" } as never, 200);
  expect(events.slice(2)).toEqual(["web begins", "web begins"]);
});
