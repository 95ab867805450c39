// The server's entries in the connection log: terminals and apps through the server, to a real daemon.
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

const list = async (q: string): Promise<ConnectionLog[]> =>
  (await admin.get<{ connection_logs: ConnectionLog[] }>(`/api/v2/connectionlog?${new URLSearchParams({ q })}`))
    .connection_logs;

test("[CG-1] a terminal is open while a client is attached, and records the user and why it ended", async () => {
  const { owner } = world;
  const path = (rest: string): string => `/api/v2/workspaceagents/${world.agent_id}/${rest}`;
  using terminal = await TestTerminal.open({ owner, path }, { id: uuid() });
  await until(async () => (await list("type:reconnecting_pty status:ongoing")).length === 1);
  terminal.sendInput({ data: "exit\n" });
  await terminal.socket.closed;
  await until(async () => (await list("type:reconnecting_pty status:completed")).length === 1);
  const [entry] = await list("type:reconnecting_pty");
  expect(entry).toMatchObject({
    user: { username: "ada" },
    workspace_owner_username: "ada",
    workspace_name: "dev",
    agent_name: "dev",
    disconnect_reason: "the command has ended",
    ip: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
  });
  expect(await list("type:reconnecting_pty username:ada")).toHaveLength(1);
});

test("[CG-3] one browser's requests are one visit; an anonymous visitor's is another, and a refused request is none", async () => {
  const request = { token: world.token, headers: { "user-agent": "Browser/1" } };
  for (const rest of ["/", "/a", "/b"]) await (await world.get(world.path("web", rest), request)).text();
  const strange = { headers: { "user-agent": "Stranger/1" } };
  for (const rest of ["/", "/c"]) await (await world.get(world.path("web", rest), strange)).text();
  await (await world.get(world.path("none"), request)).text();
  // Another node than the called one may still have to write it.
  const entries = await until(async () => {
    const noted = await list("type:workspace_app");
    return noted.length > 1 && noted;
  });
  expect(entries.map(({ user, user_agent, target }) => [user?.username, user_agent, target]).reverse()).toEqual([
    ["ada", "Browser/1", "web"],
    [undefined, "Stranger/1", "web"],
  ]);
  expect(entries.at(-1)?.web_info).toMatchObject({ slug_or_port: "web", user: { username: "ada" }, status_code: 200 });
  await (await world.get(world.path(String(world.app.port)), request)).text();
  const [port] = await until(async () => {
    const noted = await list("type:port_forwarding");
    return noted.length > 0 && noted;
  });
  expect([port?.target, port?.user?.username]).toEqual([String(world.app.port), "ada"]);
});

test("[CG-3] after fifteen minutes without a request, a visit ends with its last request, and the next request starts a new visit", () => {
  const clock = new ManualClock();
  const events: string[] = [];
  const begin = ({ target }: { target: string }) => {
    const number = events.push(`${target} begins`);
    return (_reason: string, { at }: { at: number }) => void events.push(`${number} ends at ${at - began}`);
  };
  const began = clock.now();
  const visits = new AppVisits({ clock, connections: { begin } } as never);
  const app = { agent_id: "a", slug: "web", port: 80, isPort: false } as never;
  const by = { user_id: "u", ip: "192.0.2.1", user_agent: "B" };
  expect(visits.recordTraffic(app, by)).toBe(false);
  visits.recordResponse(app, by, 200);
  clock.advance(14 * 60_000);
  expect(visits.recordTraffic(app, by)).toBe(true);
  clock.advance(15 * 60_000);
  expect(events).toEqual(["web begins", `1 ends at ${14 * 60_000}`]);
  visits.recordResponse(app, by, 200);
  visits.recordResponse(app, { ...by, user_id: null, user_agent: "one" } as never, 200);
  visits.recordResponse(app, { ...by, user_id: null, user_agent: "two" } as never, 200);
  expect(events.slice(2)).toEqual(["web begins", "web begins"]);
});
