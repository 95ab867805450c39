// Following an agent's log over real WebSockets: no gaps, no duplicates, and a close with a reason.
import { describe, expect, spyOn, test } from "bun:test";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { getContext, type SeededAgent, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { openStalledFollower, readLogs } from "./stalled.ts";

const PATCH = "/api/v2/workspaceagents/me/logs";
const toFollowPath = (seeded: SeededAgent, query = "") =>
  `/api/v2/workspaceagents/${seeded.agent_id}/logs?follow=true${query}`;
const createAgentClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.agent_token);
const createOwnerClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.owner_token);
const loadStoredLogs = (server: TestServer, seeded: SeededAgent) =>
  createOwnerClient(server, seeded).get<AgentLog[]>(`/api/v2/workspaceagents/${seeded.agent_id}/logs`);
const createBatch = (...outputs: string[]) => ({ logs: outputs.map((output) => ({ output })) });

/** Reads messages until there are `count` lines. */
const readLines = async (socket: ClientSocket, count: number): Promise<AgentLog[]> => {
  const logs: AgentLog[] = [];
  while (logs.length < count) logs.push(...(await socket.json<AgentLog[]>()));
  return logs;
};

describe("a follower", () => {
  test("[LG-20] gets the same lines with and without compression", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const open = (query = "") => createOwnerClient(server, seeded).socket(toFollowPath(seeded, query));
    const sockets = [await open(), await open("&no_compression=true"), await open("&no_compression")];
    for (const socket of sockets) await socket.json();
    await createAgentClient(server, seeded).patch(
      PATCH,
      createBatch(...Array.from({ length: 50 }, (_, i) => `line ${i} `.repeat(20))),
    );
    const storedLogs = await loadStoredLogs(server, seeded);
    for (const socket of sockets) {
      expect(await readLines(socket, 50)).toEqual(storedLogs);
      socket.close();
    }
  });

  test("[LG-20] gets compressed frames if it offers compression, except with no_compression", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const negotiateExtensions = async (query: string): Promise<string | null> => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const lines = [
        `GET ${toFollowPath(seeded, query)} HTTP/1.1`,
        `Host: ${server.url.host}`,
        ...["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"],
        ...["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Extensions: permessage-deflate"],
        `Service-Session-Token: ${seeded.owner_token}`,
      ];
      let received = "";
      const socket = await Bun.connect({
        hostname: server.url.hostname,
        port: Number(server.url.port),
        socket: {
          open: (raw) => void raw.write(`${lines.join("\r\n")}\r\n\r\n`),
          data: (_, bytes) => {
            received += bytes.toString("latin1");
            if (received.includes("\r\n\r\n")) resolve(received);
          },
        },
      });
      const responseHead = await promise;
      socket.terminate();
      expect(responseHead).toStartWith("HTTP/1.1 101 ");
      return /^sec-websocket-extensions: (.*)$/im.exec(responseHead)?.[1] ?? null;
    };
    expect(await negotiateExtensions("")).toStartWith("permessage-deflate");
    expect(await negotiateExtensions("&no_compression=true")).toBeNull();
    expect(await negotiateExtensions("&no_compression")).toBeNull();
  });

  test("[LG-6] gets an empty array first, then each batch as one array", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await createAgentClient(server, seeded).patch(PATCH, createBatch("one", "two"));
    await createAgentClient(server, seeded).patch(PATCH, createBatch("three"));
    const arrays = [await socket.json<AgentLog[]>(), await socket.json<AgentLog[]>()];
    expect(arrays.map((logs) => logs.map(({ output }) => output))).toEqual([["one", "two"], ["three"]]);
    expect(arrays.flat()).toEqual(await loadStoredLogs(server, seeded));
  });

  test("[LG-6] the query may be the bare word follow, as genuine clients send it", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const path = toFollowPath(seeded).replace("follow=true", "follow&no_compression&after=0");
    using socket = await createOwnerClient(server, seeded).socket(path);
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await createAgentClient(server, seeded).patch(PATCH, createBatch("x".repeat(5000)));
    expect((await readLines(socket, 1))[0]?.output.length).toBe(5000);
  });

  test("[LG-7] gets each line once and in order if it joins during writes, with any cursor", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const total = 120 * 20;
    const sockets: ClientSocket[] = [];
    const sent: Promise<unknown>[] = [];
    let lineNumber = 0;
    for (let i = 0; i < 120; i++) {
      sent.push(agent.patch(PATCH, createBatch(...Array.from({ length: 20 }, () => `line ${lineNumber++}`))));
      if (i % 12 === 0) sockets.push(await createOwnerClient(server, seeded).socket(toFollowPath(seeded)));
    }
    await until(async () => (await loadStoredLogs(server, seeded)).length > 33);
    const cursor = (await loadStoredLogs(server, seeded))[33]?.id as number;
    const lateFollower = await createOwnerClient(server, seeded).socket(toFollowPath(seeded, `&after=${cursor}`));
    const logsOfFollowers = await Promise.all(sockets.map((socket) => readLines(socket, total)));
    await Promise.all(sent);
    const storedLogs = await loadStoredLogs(server, seeded);
    expect(storedLogs.length).toBe(total);
    for (const logs of logsOfFollowers) expect(logs).toEqual(storedLogs);
    const laterLines = storedLogs.filter(({ id }) => id > cursor);
    expect(await readLines(lateFollower, laterLines.length)).toEqual(laterLines);
    for (const socket of [...sockets, lateFollower]) socket.close();
  });

  test("[LG-7] gets each line once if it reconnects with the ID of its last line", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const received: AgentLog[] = [];
    for (let round = 0; round < 8; round++) {
      const writing = Promise.all(
        Array.from({ length: 6 }, (_, i) => agent.patch(PATCH, createBatch(`${round}.${i}`, "."))),
      );
      using socket = await createOwnerClient(server, seeded).socket(
        toFollowPath(seeded, `&after=${received.at(-1)?.id ?? 0}`),
      );
      received.push(...(await readLines(socket, 1 + round)));
      await writing;
    }
    const storedLogs = await loadStoredLogs(server, seeded);
    using socket = await createOwnerClient(server, seeded).socket(
      toFollowPath(seeded, `&after=${received.at(-1)?.id ?? 0}`),
    );
    received.push(...(await readLines(socket, storedLogs.length - received.length)));
    expect(received).toEqual(storedLogs);
  });

  test("[LG-8] gets a large history in several messages of bounded size", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await createAgentClient(server, seeded).patch(
      PATCH,
      createBatch(...Array.from({ length: 900 }, (_, i) => `${i} `.padEnd(1000, "x"))),
    );
    using socket = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    const logs: AgentLog[] = [];
    while (logs.length < 900) {
      const message = await socket.json<AgentLog[]>();
      expect(message.length).toBeLessThan(150);
      logs.push(...message);
    }
    expect(logs).toEqual(await loadStoredLogs(server, seeded));
  });

  test("[LG-24] gets a long history completely and in order if many followers join during writes", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const createLines = (name: string, count: number) =>
      createBatch(...Array.from({ length: count }, (_, i) => `${name} ${i}`));
    for (let i = 0; i < 6; i++) await agent.patch(PATCH, createLines(`before ${i}`, 450));
    const { store } = getContext(server);
    const scan = spyOn(store, "scan");
    const joining = Array.from({ length: 30 }, () => createOwnerClient(server, seeded).socket(toFollowPath(seeded)));
    for (let i = 0; i < 20; i++) await agent.patch(PATCH, createLines(`during ${i}`, 20));
    const sockets = await Promise.all(joining);
    const logsOfFollowers = await Promise.all(sockets.map((socket) => readLines(socket, 3100)));
    const pagesRead = scan.mock.calls.length;
    const storedLogs = await loadStoredLogs(server, seeded);
    expect(storedLogs).toHaveLength(3100);
    for (const logs of logsOfFollowers) expect(logs).toEqual(storedLogs);
    // If the followers did not share reads, each of the thirty would read six or seven pages.
    expect(pagesRead).toBeLessThan(90);
    for (const socket of sockets) socket.close();
  });

  test("[LG-9] gets no line of a rejected batch", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "20" } });
    const seeded = await seedAgent(server);
    using socket = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await createAgentClient(server, seeded).patch(PATCH, createBatch("stays"));
    expect((await createAgentClient(server, seeded).fetch("PATCH", PATCH, createBatch("x".repeat(16)))).status).toBe(
      413,
    );
    await supersedeAgent(server, seeded);
    expect((await socket.closed).code).toBe(1000);
    expect((await socket.json<AgentLog[]>()).map(({ output }) => output)).toEqual(["stays"]);
    expect(await socket.next()).toBeUndefined();
  });

  test("[LG-10] is closed with 1000 after the last line when a newer build replaces the agent", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await createAgentClient(server, seeded).patch(PATCH, createBatch("last words"));

    await supersedeAgent(server, seeded);
    expect(await socket.closed).toEqual({ code: 1000, reason: "the agent is no longer in use" });
    expect((await readLines(socket, 1))[0]?.output).toBe("last words");
    using lateSocket = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    expect((await readLines(lateSocket, 1))[0]?.output).toBe("last words");
    expect((await lateSocket.closed).code).toBe(1000);
  });

  test("[SK-1] is closed with 1008 if it sends a message", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    await socket.json();
    for (let i = 0; i < 50; i++) socket.send("hello?");
    expect((await socket.closed).code).toBe(1008);
  });

  test("[SK-2] gets 503 above the limit of sockets, until another one closes", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_MAX_CONNECTIONS: "7" } });
    const seeded = await seedAgent(server);
    const owner = createOwnerClient(server, seeded);
    const sockets = [
      await owner.socket(toFollowPath(seeded)),
      await owner.socket(toFollowPath(seeded)),
      await owner.socket(toFollowPath(seeded)),
    ];
    const upgrade = { headers: { upgrade: "websocket", connection: "upgrade" } };
    expect((await owner.fetch("GET", toFollowPath(seeded), undefined, upgrade)).status).toBe(503);
    sockets[0]?.close();
    await sockets[0]?.closed;
    await getContext(server).agents.ask(seeded.agent_id, "settle", {});
    using newSocket = await owner.socket(toFollowPath(seeded));
    expect(await newSocket.json<AgentLog[]>()).toEqual([]);
    for (const socket of sockets) socket.close();
  });

  test("[SK-3] is closed with 1013 if it stops reading, without losses for others, and can resume", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "100000000" } });
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    using reader = await createOwnerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await reader.json<AgentLog[]>()).toEqual([]);
    await using stalled = await openStalledFollower(
      server.url,
      toFollowPath(seeded, "&no_compression"),
      seeded.owner_token,
    );
    const { sockets } = getContext(server);
    const text = "y".repeat(1000);
    let sentCount = 0;
    const hasNoFollowers = () => sockets.countFollowers(`agent_logs_plain:${seeded.agent_id}`) === 0;
    await until(() => !hasNoFollowers(), { what: "the reader that will stall to follow live" });
    while (!hasNoFollowers() && sentCount < 40_000) {
      await agent.patch(PATCH, createBatch(...Array.from({ length: 100 }, () => text)));
      sentCount += 100;
    }
    expect(hasNoFollowers()).toBe(true);
    expect((await readLines(reader, sentCount)).length).toBe(sentCount);
    const stalledResult = await readLogs(stalled);
    expect(stalledResult.close).toEqual({ code: 1013, reason: "reader too slow, resume from the last id seen" });
    const storedLogs = await loadStoredLogs(server, seeded);
    // If a node forwards the stream, the sockets in between may buffer more than one response contains.
    expect(stalledResult.logs.slice(0, storedLogs.length)).toEqual(storedLogs.slice(0, stalledResult.logs.length));
    using resumed = await createOwnerClient(server, seeded).socket(
      toFollowPath(seeded, `&after=${stalledResult.logs.at(-1)?.id}`),
    );
    expect([...stalledResult.logs, ...(await readLines(resumed, sentCount - stalledResult.logs.length))].length).toBe(
      sentCount,
    );
  });
});
