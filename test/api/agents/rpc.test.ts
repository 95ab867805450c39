// An agent's connection with a real WebSocket, the real client and the real store.
import { describe, expect, test } from "bun:test";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { NIL_UUID, uuid, uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client } from "#src/client.ts";
import { Lifecycle_State, type Startup_Subsystem } from "#src/wire/gen/agent_pb.ts";
import { getContext, type SeededAgent, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { call, handshake } from "../edge/raw-http.ts";
import { connectAgent } from "./rpc-agent.ts";

const loadAgent = (server: TestServer, seeded: SeededAgent) =>
  new Client(server.url, seeded.owner_token).get<WorkspaceAgent>(`/api/v2/workspaceagents/${seeded.agent_id}`);
const loadLogs = (server: TestServer, seeded: SeededAgent) =>
  new Client(server.url, seeded.owner_token).get<AgentLog[]>(`/api/v2/workspaceagents/${seeded.agent_id}/logs`);

describe("connecting", () => {
  test("[AG-5] makes the agent connected until the connection closes, and notifies watchers of both", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    expect((await loadAgent(server, seeded)).status).toBe("connecting");
    const notifications: unknown[] = [];
    const { topics, agents } = getContext(server);
    topics.subscribe("workspace_changed", seeded.workspace_id, (event) => notifications.push(event));
    {
      await using connection = await connectAgent(server, seeded.agent_token);
      await connection.agent.getServiceBanner({});
      const agent = await loadAgent(server, seeded);
      expect([agent.status, agent.api_version, typeof agent.first_connected_at]).toEqual([
        "connected",
        "2.10",
        "string",
      ]);
      expect(agent.disconnected_at).toBeUndefined();
    }
    await agents.ask(seeded.agent_id, "settle", {});
    expect((await loadAgent(server, seeded)).status).toBe("disconnected");
    expect(notifications.length).toBe(2);
  });

  test("[AG-23] changes the agent's `updated_at` with its status, lifecycle and startup report, but not with heartbeats", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const loadUpdatedAt = async (): Promise<number> => Date.parse((await loadAgent(server, seeded)).updated_at);
    const changesUpdatedAt = async (action: () => Promise<unknown>): Promise<boolean> => {
      const before = await loadUpdatedAt();
      // Waits for the next millisecond.
      await until(() => Date.now() > before);
      await action();
      return (await loadUpdatedAt()) > before;
    };
    const connection = await connectAgent(server, seeded.agent_token);
    const { agent } = connection;
    await agent.getServiceBanner({});
    expect(
      await changesUpdatedAt(() => agent.updateLifecycle({ lifecycle: { state: Lifecycle_State.STARTING } })),
    ).toBe(true);
    const startup = { version: "v1.2.3", expandedDirectory: "/", subsystems: [] };
    expect(await changesUpdatedAt(() => agent.updateStartup({ startup }))).toBe(true);
    expect(await changesUpdatedAt(() => agent.updateStats({ stats: {} }))).toBe(false);
    const disconnect = async (): Promise<void> => {
      await connection[Symbol.asyncDispose]();
      await until(async () => (await loadAgent(server, seeded)).status === "disconnected");
    };
    expect(await changesUpdatedAt(disconnect)).toBe(true);
  });

  test("[AG-6] succeeds with any version 2.x and fails for other versions, anonymous callers, users and old agents", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const requestUpgrade = async (query: string, token: string) => {
      const headers = { "Service-Session-Token": token, upgrade: "websocket", connection: "upgrade" };
      const response = await fetch(new URL(`/api/v2/workspaceagents/me/rpc${query}`, server.url), { headers });
      return {
        status: response.status,
        body: (await response.json()) as { message: string; validations?: { field: string }[] },
      };
    };
    for (const version of ["3.0", "1.0", "2", "two", "2.x"]) {
      const { status, body } = await requestUpgrade(`?version=${version}`, seeded.agent_token);
      expect([status, body.message, body.validations?.[0]?.field]).toEqual([
        400,
        "Unknown or unsupported API version",
        "version",
      ]);
    }
    await using newer = await connectAgent(server, seeded.agent_token, "?version=2.99");
    await newer.agent.getServiceBanner({});
    await using oldest = await connectAgent(server, seeded.agent_token, "");
    await oldest.agent.getServiceBanner({});
    expect((await loadAgent(server, seeded)).api_version).toBe("2.0");
    expect((await requestUpgrade("", seeded.owner_token)).status).toBe(401);
    expect((await requestUpgrade("", crypto.randomUUID())).status).toBe(401);
    expect((await requestUpgrade("", "nonsense")).status).toBe(401);
    await supersedeAgent(server, seeded);
    expect((await requestUpgrade("", seeded.agent_token)).status).toBe(401);
  });

  test("[AG-7] a second time replaces the first connection without disconnecting the agent", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await using first = await connectAgent(server, seeded.agent_token);
    await first.agent.getServiceBanner({});
    await using second = await connectAgent(server, seeded.agent_token);
    expect(await first.closed).toEqual({ code: 1001, reason: "a newer connection of this agent has taken over" });
    await getContext(server).agents.ask(seeded.agent_id, "settle", {});
    expect((await loadAgent(server, seeded)).status).toBe("connected");
    await second.agent.getServiceBanner({});
  });

  test("[AG-8] [AG-27] passively does not affect the agent's status, and is limited to eight connections", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await using active = await connectAgent(server, seeded.agent_token);
    await active.agent.getServiceBanner({});
    {
      await using passive = await connectAgent(server, seeded.agent_token, "?version=2.10&role=logs");
      expect(await passive.agent.batchCreateLogs({ logs: [{ output: "shipped" }] })).toMatchObject({
        logLimitExceeded: false,
      });
    }
    expect((await loadAgent(server, seeded)).status).toBe("connected");
    const passiveConnections = await Promise.all(
      Array.from({ length: 8 }, () => connectAgent(server, seeded.agent_token, "?version=2.10&role=logs")),
    );
    const path = "/api/v2/workspaceagents/me/rpc?role=x";
    const ninth = await call(server.url, handshake(path, { "Coder-Session-Token": seeded.agent_token }));
    expect([ninth?.status, ninth?.text]).toEqual([503, expect.stringContaining("You have too many open connections.")]);
    for (const connection of passiveConnections) await connection[Symbol.asyncDispose]();
    await active.agent.getServiceBanner({});
    expect((await loadLogs(server, seeded)).map(({ output }) => output)).toEqual(["shipped"]);
  });

  test("[AG-9] ends with 1001 when a newer build replaces the agent", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await using connection = await connectAgent(server, seeded.agent_token);
    await connection.agent.getServiceBanner({});
    await supersedeAgent(server, seeded);
    expect(await connection.closed).toEqual({ code: 1001, reason: "a newer build has taken over" });
  });

  test("[SK-4] ends with 1003 when the client sends text on the binary connection", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await new Client(server.url, seeded.agent_token).socket("/api/v2/workspaceagents/me/rpc");
    socket.send("hello");
    expect((await socket.closed).code).toBe(1003);
  });
});

describe("calling", () => {
  test("[AG-10] [AG-24] getManifest returns the agent of the template, and everything that genuine agents require", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_WILDCARD_ACCESS_URL: "*.apps.example.com" } });
    const devcontainers = [{ id: uuid(), name: "app", workspace_folder: "app", config_path: "" }];
    const seeded = await seedAgent(server, {
      agent: { directory: "~/code", environment_variables: { A: "1" }, motd_file: "/etc/motd", devcontainers },
      apps: [{ slug: "web", url: "http://localhost:8080" }],
      scripts: [{ display_name: "Start", script: "echo hi", run_on_start: true, timeout_seconds: 60 }],
      metadata: [{ key: "cpu", script: "uptime", interval: 10, timeout: 3 }],
    });
    await using connection = await connectAgent(server, seeded.agent_token);
    const manifest = await connection.agent.getManifest({});
    expect(uuidFromBytes(manifest.agentId)).toBe(seeded.agent_id);
    expect(uuidFromBytes(manifest.workspaceId)).toBe(seeded.workspace_id);
    expect(manifest).toMatchObject({
      agentName: "main",
      workspaceName: "dev",
      directory: "~/code",
      environmentVariables: { A: "1" },
      motdPath: "/etc/motd",
      derpForceWebsockets: true,
    });
    expect(manifest.ownerUsername.length).toBeGreaterThan(0);
    const names = `main--dev--${manifest.ownerUsername}`;
    expect(manifest.vsCodePortProxyUri).toBe(`http://{{port}}--${names}.apps.example.com:${server.url.port}`);
    expect(manifest.parentId).toBeUndefined();
    expect(manifest.derpMap?.homeParams).toBeDefined();
    expect(manifest.derpMap?.regions["999"]?.nodes[0]?.derpPort).toBe(Number(server.url.port));
    const [app] = manifest.apps;
    expect(app).toMatchObject({ slug: "web", sharingLevel: 1, health: 1, healthcheck: { url: "" } });
    expect(manifest.scripts[0]).toMatchObject({ script: "echo hi", runOnStart: true, timeout: { seconds: 60n } });
    for (const id of [app?.id, manifest.scripts[0]?.id, manifest.scripts[0]?.logSourceId]) expect(id?.length).toBe(16);
    expect(
      manifest.devcontainers.map(({ id, name, workspaceFolder }) => [uuidFromBytes(id), name, workspaceFolder]),
    ).toEqual([[devcontainers[0]?.id ?? "", "app", "app"]]);
    expect(manifest.metadata[0]).toMatchObject({
      key: "cpu",
      interval: { seconds: 0n, nanos: 10 },
      timeout: { seconds: 0n, nanos: 3 },
    });
  });

  test("[AG-11] reports are stored and shown", async () => {
    await using server = await startTestServer();
    const app = crypto.randomUUID();
    const script = crypto.randomUUID();
    const seeded = await seedAgent(server, {
      apps: [{ id: app, slug: "web", healthcheck_url: "http://localhost:1", health: "initializing" }],
      scripts: [{ id: script }],
      metadata: [{ key: "cpu" }],
    });
    await using connection = await connectAgent(server, seeded.agent_token);
    const { agent } = connection;
    const time = timestampFromMs(getContext(server).clock.now());
    expect(
      await agent.updateStartup({
        startup: { version: "v2.34.1", expandedDirectory: "/home/dev", subsystems: [3, 1, 3] },
      }),
    ).toMatchObject({ version: "v2.34.1" });
    expect(await agent.updateLifecycle({ lifecycle: { state: 2, changedAt: time } })).toMatchObject({ state: 2 });
    await agent.updateLifecycle({ lifecycle: { state: 5, changedAt: time } });
    await agent.batchUpdateAppHealths({ updates: [{ id: uuidToBytes(app), health: 3 }] });
    await agent.batchUpdateMetadata({
      metadata: [
        { key: "cpu", result: { value: "7%" } },
        { key: "unknown", result: { value: "?" } },
      ],
    });
    await agent.scriptCompleted({
      timing: { scriptId: uuidToBytes(script), start: time, end: time, exitCode: 3, stage: 0, status: 1 },
    });
    expect((await agent.updateStats({})).reportInterval?.seconds).toBe(300n);
    expect(
      (await agent.updateStats({ stats: { rxBytes: 5n, sessionCounts: { ssh: 2n } } })).reportInterval?.seconds,
    ).toBe(300n);
    expect(await loadAgent(server, seeded)).toMatchObject({
      version: "v2.34.1",
      expanded_directory: "/home/dev",
      subsystems: ["envbox", "exectrace"],
      lifecycle_state: "ready",
      health: { healthy: true },
      apps: [{ slug: "web", health: "healthy" }],
      scripts: [{ status: "exit_failure", exit_code: 3 }],
      metadata: [{ description: { key: "cpu" }, result: { value: "7%", error: "" } }],
    });
  });

  test("[AG-12] succeeds for every method that genuine agents use; unknown methods return code 12", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await using connection = await connectAgent(server, seeded.agent_token);
    const { agent, tailnet } = connection;
    expect((await agent.getAnnouncementBanners({})).announcementBanners).toEqual([]);
    expect((await agent.getServiceBanner({})).enabled).toBe(false);
    const { config } = await agent.getResourcesMonitoringConfiguration({});
    expect(config?.collectionIntervalSeconds).toBeGreaterThan(0);
    await agent.pushResourcesMonitoringUsage({ datapoints: [] });
    await agent.reportConnection({ connection: { id: uuidToBytes(NIL_UUID), action: 1, type: 1 } });
    const maps = tailnet.streamDERPMaps({});
    const first = await maps.next();
    expect(first.value?.homeParams).toBeDefined();
    await maps.return();
    expect(await agent.pushContextState({ version: 1n, initial: true })).toMatchObject({ accepted: true });
    const unimplementedCode = await agent.reportBoundaryLogs({}).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
    expect(unimplementedCode).toBe(12);
  });

  test("[AG-13] with an invalid report returns an error and changes nothing; the connection continues", async () => {
    await using server = await startTestServer();
    const appId = crypto.randomUUID();
    const seeded = await seedAgent(server, { apps: [{ id: appId }] });
    await using connection = await connectAgent(server, seeded.agent_token);
    const { agent } = connection;
    await agent.getServiceBanner({});
    const before = await loadAgent(server, seeded);
    const invalidReports: (() => Promise<unknown>)[] = [
      () => agent.updateStartup({ startup: { version: "latest" } }),
      () => agent.updateStartup({ startup: { version: "v1.2.3", subsystems: [9 as Startup_Subsystem] } }),
      () => agent.updateStartup({}),
      () => agent.updateLifecycle({ lifecycle: { state: 0 } }),
      () => agent.updateLifecycle({ lifecycle: { state: 42 as Lifecycle_State } }),
      () => agent.batchUpdateAppHealths({ updates: [{ id: uuidToBytes(appId), health: 3 }] }),
      () => agent.batchUpdateAppHealths({ updates: [{ id: uuidToBytes(crypto.randomUUID()), health: 3 }] }),
      () => agent.batchUpdateAppHealths({ updates: [{ id: new Uint8Array(3), health: 3 }] }),
      () => agent.scriptCompleted({ timing: { scriptId: uuidToBytes(NIL_UUID) } }),
      () => agent.batchCreateLogs({ logSourceId: uuidToBytes(crypto.randomUUID()), logs: [{ output: "x" }] }),
    ];
    for (const sendReport of invalidReports)
      expect(
        await sendReport().then(
          () => "accepted",
          () => "refused",
        ),
      ).toBe("refused");
    const after = await loadAgent(server, seeded);
    expect({ ...after, last_connected_at: "" }).toEqual({ ...before, last_connected_at: "" });
  });

  test("[LG-11] batchCreateLogs follows the rules for sources, levels and the limit, and stores a batch with an ID once", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "50000" } });
    const seeded = await seedAgent(server);
    const { agents } = getContext(server);
    const source = crypto.randomUUID();
    await agents.ask(seeded.agent_id, "createLogSource", { id: source, display_name: "Build" });
    await using connection = await connectAgent(server, seeded.agent_token);
    const { agent } = connection;
    const logSourceId = uuidToBytes(source);
    const batchId = uuidToBytes(crypto.randomUUID());
    for (let i = 0; i < 3; i++) {
      await agent.batchCreateLogs({ logSourceId, batchId, logs: [{ output: "once", level: 4 }, { output: "twice" }] });
    }
    await agent.batchCreateLogs({ logs: Array.from({ length: 2500 }, (_, i) => ({ output: `${i}` })) });
    const stored = await loadLogs(server, seeded);
    expect(stored.slice(0, 2).map(({ output, level, source_id }) => [output, level, source_id])).toEqual([
      ["once", "warn", source],
      ["twice", "info", source],
    ]);
    expect(stored.slice(2).map(({ output }) => output)).toEqual(Array.from({ length: 2500 }, (_, i) => `${i}`));
    expect(await agent.batchCreateLogs({ logs: [{ output: "x".repeat(50_000) }] })).toMatchObject({
      logLimitExceeded: true,
    });
    expect(await agent.batchCreateLogs({ logSourceId, batchId, logs: [{ output: "once" }] })).toMatchObject({
      logLimitExceeded: false,
    });
    expect(await agent.batchCreateLogs({ logs: [{ output: "x" }] })).toMatchObject({ logLimitExceeded: true });
    expect((await loadAgent(server, seeded)).logs_overflowed).toBe(true);
    expect((await loadLogs(server, seeded)).length).toBe(2502);
  });
});
