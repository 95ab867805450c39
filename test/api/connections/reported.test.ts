// Connections that agents report. The agents speak the real protocol, and the test controls the clock.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { connectionUpkeep } from "#actors/connections/upkeep.ts";
import { uuid, uuidToBytes } from "#base/ids.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { ConnectionLog } from "#schema/connections.ts";
import { Client } from "#src/client.ts";
import { Connection_Action as Action, Lifecycle_State, Connection_Type as Type } from "#src/wire/gen/agent_pb.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, type SeededAgent, seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { connectAgent } from "../agents/rpc-agent.ts";

type Page = { connection_logs: ConnectionLog[]; count: number; count_cap: number };
type ConnectionReport = {
  id?: string;
  action?: Action;
  type?: Type;
  at?: number;
  reason?: string;
  code?: number;
  app?: string;
};

const clock = new ManualClock();
const DAY_MS = 86_400_000;
let server: TestServer;
let admin: Client;
beforeAll(async () => {
  server = await startTestServer({ clock });
  admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
});
afterAll(async () => await server[Symbol.asyncDispose]());

const searchConnections = (q: string, page = "", client = admin): Promise<Page> =>
  client.get<Page>(`/api/v2/connectionlog?${new URLSearchParams({ q })}${page}`);
const listConnections = async ({ workspace_id }: SeededAgent): Promise<ConnectionLog[]> =>
  (await searchConnections(`workspace_id:${workspace_id}`)).connection_logs;

const reportConnections = async (seeded: SeededAgent, ...reports: ConnectionReport[]): Promise<void> => {
  await using connection = await connectAgent(server, seeded.agent_token);
  for (const { id = uuid(), action = Action.CONNECT, type = Type.SSH, at, reason, code = 0, app = "" } of reports) {
    await connection.agent.reportConnection({
      connection: {
        id: uuidToBytes(id),
        action,
        type,
        timestamp: timestampFromMs(at ?? clock.now()),
        ip: "fd7a:115c:a1e0:4b::1",
        statusCode: code,
        appName: app,
        ...(reason === undefined ? {} : { reason }),
      },
    });
  }
};
const sweep = async (): Promise<void> => {
  const { services } = getContext(server);
  clock.advance(60_000);
  services.sweep();
  await services.whenIdle();
};

test("[CG-2] [CG-4] logs each session once with one end and exit code, editors by name, and ports by number", async () => {
  const seeded = await seedAgent(server);
  const id = uuid();
  await reportConnections(seeded, { id }, { id }, { action: Action.DISCONNECT, reason: "unknown" });
  const [open, ...more] = await listConnections(seeded);
  expect(more).toEqual([]);
  expect(open).toMatchObject({
    type: "ssh",
    disconnect_time: null,
    disconnect_reason: "",
    workspace_id: seeded.workspace_id,
    workspace_deleted: false,
    agent_id: seeded.agent_id,
    ip: "fd7a:115c:a1e0:4b::1",
    user: null,
    ssh_info: { connection_id: id },
  });
  expect(open?.ssh_info).not.toHaveProperty("disconnect_time");
  clock.advance(5_000);
  const end = { id, action: Action.DISCONNECT, reason: "it was enough", code: 7 };
  await reportConnections(seeded, end, { ...end, reason: "again", code: 8 });
  const [ended] = await listConnections(seeded);
  expect(ended).toMatchObject({ id: open?.id, disconnect_reason: "it was enough" });
  expect(ended?.ssh_info).toMatchObject({ exit_code: 7, disconnect_reason: "it was enough" });
  expect(Date.parse(ended?.disconnect_time ?? "") - Date.parse(ended?.connect_time ?? "")).toBe(5_000);

  await reportConnections(
    seeded,
    { app: "cursor", type: Type.TYPE_UNSPECIFIED },
    { app: "vscode" },
    { app: "port:8080" },
  );
  await reportConnections(seeded, { type: Type.JETBRAINS }, { type: Type.RECONNECTING_PTY });
  const kinds = (await listConnections(seeded)).slice(0, 5).map(({ type, target }) => [type, target]);
  expect(kinds.reverse()).toEqual([
    ["ssh", "cursor"],
    ["vscode", ""],
    ["port_forwarding", "8080"],
    ["jetbrains", ""],
    ["reconnecting_pty", ""],
  ]);
});

test("[CG-4] an agent's clock is used if it is within an hour, and nothing starts in the future", async () => {
  const seeded = await seedAgent(server);
  const now = clock.now();
  for (const at of [now - 60_000, now + 60_000, now - 2 * 3_600_000]) await reportConnections(seeded, { at });
  const startOffsetsMs = (await listConnections(seeded)).map(({ connect_time }) => Date.parse(connect_time) - now);
  expect(startOffsetsMs.sort((a, b) => a - b)).toEqual([-60_000, 0, 0]);
});

test("[CG-5] logs at most 300 connections per minute", async () => {
  const seeded = await seedAgent(server);
  await reportConnections(seeded, ...Array.from({ length: 320 }, () => ({})));
  expect(await listConnections(seeded)).toHaveLength(300);
  clock.advance(60_000);
  await reportConnections(seeded, {});
  expect(await listConnections(seeded)).toHaveLength(301);
});

test("[CG-5] ignores the clock of an agent that restarts in a far future", async () => {
  const seeded = await seedAgent(server);
  await reportConnections(seeded, {});
  clock.advance(1_000);
  await using connection = await connectAgent(server, seeded.agent_token);
  for (const seconds of [8_640_000_000_001n, 253_402_300_800n]) {
    const lifecycle = { state: Lifecycle_State.STARTING, changedAt: { seconds, nanos: 0 } };
    await connection.agent.updateLifecycle({ lifecycle });
  }
  const [listed] = await listConnections(seeded);
  expect(Date.parse(listed?.disconnect_time ?? "")).toBe(clock.now());
});

test("[CG-6] closes the open connections of an agent that restarts or whose build was replaced", async () => {
  const seeded = await seedAgent(server);
  await reportConnections(seeded, {});
  clock.advance(1_000);
  {
    await using connection = await connectAgent(server, seeded.agent_token);
    const lifecycle = { state: Lifecycle_State.STARTING, changedAt: timestampFromMs(clock.now()) };
    await connection.agent.updateLifecycle({ lifecycle });
  }
  expect((await listConnections(seeded))[0]?.disconnect_reason).toBe("the workspace's agent was started again");
  await reportConnections(seeded, {});
  await sweep();
  expect((await listConnections(seeded))[0]?.disconnect_time).toBeNull();
  await supersedeAgent(server, seeded);
  await sweep();
  expect((await listConnections(seeded))[0]?.disconnect_reason).toBe("the workspace's agent disconnected");
});

test("[CG-7] filters by type, state, people, workspace, connection and time, and rejects unknown keys", async () => {
  const seeded = await seedAgent(server);
  const id = uuid();
  clock.advance(1_000);
  const startTime = new Date(clock.now()).toISOString().replace(/\.\d+/, "");
  clock.advance(1_000);
  await reportConnections(seeded, { id, type: Type.VSCODE }, { type: Type.SSH }, { id, action: Action.DISCONNECT });
  const countFound = async (q: string) =>
    (await searchConnections(`workspace_id:${seeded.workspace_id} ${q}`)).connection_logs.length;
  const owner = (await listConnections(seeded))[0]?.workspace_owner_username ?? "";
  expect(await Promise.all(["", "type:vscode", "vscode", "type:jetbrains"].map(countFound))).toEqual([2, 1, 1, 0]);
  expect(await Promise.all(["status:ongoing", "status:completed"].map(countFound))).toEqual([1, 1]);
  expect(await Promise.all([`connection_id:${id}`, `connection_id:${uuid()}`].map(countFound))).toEqual([1, 0]);
  const owners = [`workspace_owner:${owner}`, `workspace_owner_email:${owner}@example.com`, "workspace_owner:me"];
  expect(await Promise.all(owners.map(countFound))).toEqual([2, 2, 0]);
  expect(await Promise.all(["username:me", "user_email:unknown@example.com"].map(countFound))).toEqual([0, 0]);
  expect(await Promise.all([`organization:${seeded.organization_id}`, "organization:default"].map(countFound))).toEqual(
    [2, 0],
  );
  expect(
    await Promise.all([`connected_after:"${startTime}"`, `connected_before:"${startTime}"`].map(countFound)),
  ).toEqual([2, 0]);
  const invalidQuery = "cake:1 status:maybe workspace_id:7 connected_after:monday";
  const response = await admin.fetch("GET", `/api/v2/connectionlog?${new URLSearchParams({ q: invalidQuery })}`);
  const { validations } = (await response.json()) as { validations: { field: string }[] };
  expect([response.status, validations.map(({ field }) => field).sort()]).toEqual([
    400,
    ["cake", "connected_after", "status", "workspace_id"],
  ]);
});

test("[CG-8] auditors can page through the connection log; organization auditors see only their organization", async () => {
  const [firstAgent, secondAgent] = [await seedAgent(server), await seedAgent(server)];
  await reportConnections(firstAgent, {}, {}, {});
  await reportConnections(secondAgent, {});
  const createReader = async (roles: string[]) => new Client(server.url, (await seedUser(server, { roles })).token);
  const member = await createReader([]);
  expect((await member.fetch("GET", "/api/v2/connectionlog")).status).toBe(403);
  expect((await member.fetch("GET", "/api/v2/connectionlog/retention")).status).toBe(403);
  const auditor = await createReader(["auditor"]);
  expect((await searchConnections("", "", auditor)).count).toBe((await searchConnections("")).count);
  const organizationAuditor = await seedUser(server, { organization_id: firstAgent.organization_id });
  await admin.put(`/api/v2/organizations/${firstAgent.organization_id}/members/${organizationAuditor.user_id}/roles`, {
    roles: ["organization-auditor"],
  });
  const visible = await searchConnections("", "", new Client(server.url, organizationAuditor.token));
  expect([visible.count, new Set(visible.connection_logs.map(({ workspace_id }) => workspace_id))]).toEqual([
    3,
    new Set([firstAgent.workspace_id]),
  ]);
  const q = `workspace_id:${firstAgent.workspace_id}`;
  const listIds = (page: Page) => page.connection_logs.map(({ id }) => id);
  const allIds = listIds(await searchConnections(q));
  const first = await searchConnections(q, "&limit=2");
  expect([listIds(first), first.count, first.count_cap]).toEqual([allIds.slice(0, 2), 3, 2_000]);
  expect(listIds(await searchConnections(q, `&limit=2&after_id=${allIds[1]}`))).toEqual(allIds.slice(2));
  expect(listIds(await searchConnections(q, "&limit=2&offset=2"))).toEqual(allIds.slice(2));
  expect((await admin.fetch("GET", `/api/v2/connectionlog?after_id=${uuid()}`)).status).toBe(400);
});

test("[CG-9] deletes entries after the retention, by default 90 days, and audits changes of it", async () => {
  const seeded = await seedAgent(server);
  await reportConnections(seeded, {});
  const path = "/api/v2/connectionlog/retention";
  expect(await admin.get<{ days: number }>(path)).toEqual({ days: 90 });
  // A separate clock, because the server's would fire every timer of 90 days.
  let now = clock.now();
  const upkeep = connectionUpkeep({ store: getContext(server).store, clock: { now: () => now } });
  const countAfterDays = async (days: number): Promise<number> => {
    now += days * DAY_MS;
    upkeep.sweep();
    await upkeep.whenIdle();
    return (await listConnections(seeded)).length;
  };
  expect(await countAfterDays(89)).toBe(1);
  await admin.put(path, { days: 0 });
  expect(await countAfterDays(2)).toBe(1);
  await admin.put(path, { days: 90 });
  expect(await countAfterDays(1)).toBe(0);
  const { audit_logs } = await admin.get<{ audit_logs: AuditLog[] }>("/api/v2/audit?limit=1&q=audit_settings");
  expect(audit_logs[0]).toMatchObject({ action: "write", resource_target: "connection retention" });
  expect(audit_logs[0]?.diff).toEqual({ days: { old: 0, new: 90, secret: false } });
  const auditor = new Client(server.url, (await seedUser(server, { roles: ["auditor"] })).token);
  expect((await auditor.fetch("PUT", path, { days: 1 })).status).toBe(403);
});

test("[CG-6] closes the connections that a stopped server left open", async () => {
  const seeded = await seedAgent(server);
  const { connections } = getContext(server);
  connections.begin({ agent_id: seeded.agent_id, type: "reconnecting_pty", user_id: null, ip: null, user_agent: "" });
  await connections.flush();
  expect((await listConnections(seeded))[0]?.disconnect_time).toBeNull();
  await connections.recover();
  await until(async () => (await listConnections(seeded))[0]?.disconnect_reason === "the server was stopped");
});
