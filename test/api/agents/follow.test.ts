// Following an agent's log over real WebSockets: no gaps, no duplicates, and an end with a reason.
import { describe, expect, spyOn, test } from "bun:test";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { getContext, type SeededAgent, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { openStalled, readLogs } from "./stalled.ts";

const PATCH = "/api/v2/workspaceagents/me/logs";
const toFollowPath = (seeded: SeededAgent, query = "") =>
  `/api/v2/workspaceagents/${seeded.agent_id}/logs?follow=true${query}`;
const agentClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.agent_token);
const ownerClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.owner_token);
const getStoredLogs = (server: TestServer, seeded: SeededAgent) =>
  ownerClient(server, seeded).get<AgentLog[]>(`/api/v2/workspaceagents/${seeded.agent_id}/logs`);
const batch = (...outputs: string[]) => ({ logs: outputs.map((output) => ({ output })) });

/** Reads arrays until there are `count` lines. */
const collect = async (socket: ClientSocket, count: number): Promise<AgentLog[]> => {
  const logs: AgentLog[] = [];
  while (logs.length < count) logs.push(...(await socket.json<AgentLog[]>()));
  return logs;
};

describe("a follower", () => {
  test("[LG-20] large frames are compressed for a few followers, never with no_compression, and read the same", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const open = (query = "") => ownerClient(server, seeded).socket(toFollowPath(seeded, query));
    const sockets = [await open(), await open("&no_compression=true"), await open("&no_compression")];
    for (const socket of sockets) await socket.json();
    await agentClient(server, seeded).patch(
      PATCH,
      batch(...Array.from({ length: 50 }, (_, i) => `line ${i} `.repeat(20))),
    );
    const truth = await getStoredLogs(server, seeded);
    for (const socket of sockets) {
      expect(await collect(socket, 50)).toEqual(truth);
      socket.close();
    }
  });

  test("[LG-20] compression is negotiated with clients that offer it, and never with no_compression", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const extensions = async (query: string): Promise<string | null> => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const lines = [
        `GET ${toFollowPath(seeded, query)} HTTP/1.1`,
        `Host: ${server.url.host}`,
        ...["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"],
        ...["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Extensions: permessage-deflate"],
        `Service-Session-Token: ${seeded.owner_token}`,
      ];
      let head = "";
      const socket = await Bun.connect({
        hostname: server.url.hostname,
        port: Number(server.url.port),
        socket: {
          open: (raw) => void raw.write(`${lines.join("\r\n")}\r\n\r\n`),
          data: (_, bytes) => {
            head += bytes.toString("latin1");
            if (head.includes("\r\n\r\n")) resolve(head);
          },
        },
      });
      const answer = await promise;
      socket.terminate();
      expect(answer).toStartWith("HTTP/1.1 101 ");
      return /^sec-websocket-extensions: (.*)$/im.exec(answer)?.[1] ?? null;
    };
    expect(await extensions("")).toStartWith("permessage-deflate");
    expect(await extensions("&no_compression=true")).toBeNull();
    expect(await extensions("&no_compression")).toBeNull();
  });

  test("[LG-6] gets an empty array first, then each batch as one array", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await agentClient(server, seeded).patch(PATCH, batch("one", "two"));
    await agentClient(server, seeded).patch(PATCH, batch("three"));
    const arrays = [await socket.json<AgentLog[]>(), await socket.json<AgentLog[]>()];
    expect(arrays.map((logs) => logs.map(({ output }) => output))).toEqual([["one", "two"], ["three"]]);
    expect(arrays.flat()).toEqual(await getStoredLogs(server, seeded));
  });

  test("[LG-6] the query may be the bare word follow, as genuine clients send it", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const path = toFollowPath(seeded).replace("follow=true", "follow&no_compression&after=0");
    using socket = await ownerClient(server, seeded).socket(path);
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await agentClient(server, seeded).patch(PATCH, batch("x".repeat(5000)));
    expect((await collect(socket, 1))[0]?.output.length).toBe(5000);
  });

  test("[LG-7] a follower that joins during writes sees each line once and in order, whatever the cursor", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const total = 120 * 20;
    const sockets: ClientSocket[] = [];
    const sent: Promise<unknown>[] = [];
    let next = 0;
    for (let i = 0; i < 120; i++) {
      sent.push(agent.patch(PATCH, batch(...Array.from({ length: 20 }, () => `line ${next++}`))));
      if (i % 12 === 0) sockets.push(await ownerClient(server, seeded).socket(toFollowPath(seeded)));
    }
    await until(async () => (await getStoredLogs(server, seeded)).length > 33);
    const middle = (await getStoredLogs(server, seeded))[33]?.id as number;
    const lateFollower = await ownerClient(server, seeded).socket(toFollowPath(seeded, `&after=${middle}`));
    const seen = await Promise.all(sockets.map((socket) => collect(socket, total)));
    await Promise.all(sent);
    const truth = await getStoredLogs(server, seeded);
    expect(truth.length).toBe(total);
    for (const logs of seen) expect(logs).toEqual(truth);
    const laterLines = truth.filter(({ id }) => id > middle);
    expect(await collect(lateFollower, laterLines.length)).toEqual(laterLines);
    for (const socket of [...sockets, lateFollower]) socket.close();
  });

  test("[LG-7] a follower that reconnects with the last ID it saw misses nothing and gets nothing twice", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const received: AgentLog[] = [];
    for (let round = 0; round < 8; round++) {
      const writing = Promise.all(Array.from({ length: 6 }, (_, i) => agent.patch(PATCH, batch(`${round}.${i}`, "."))));
      using socket = await ownerClient(server, seeded).socket(
        toFollowPath(seeded, `&after=${received.at(-1)?.id ?? 0}`),
      );
      received.push(...(await collect(socket, 1 + round)));
      await writing;
    }
    const truth = await getStoredLogs(server, seeded);
    using socket = await ownerClient(server, seeded).socket(toFollowPath(seeded, `&after=${received.at(-1)?.id ?? 0}`));
    received.push(...(await collect(socket, truth.length - received.length)));
    expect(received).toEqual(truth);
  });

  test("[LG-8] a large history arrives in several arrays of bounded size", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await agentClient(server, seeded).patch(
      PATCH,
      batch(...Array.from({ length: 900 }, (_, i) => `${i} `.padEnd(1000, "x"))),
    );
    using socket = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    const logs: AgentLog[] = [];
    while (logs.length < 900) {
      const array = await socket.json<AgentLog[]>();
      expect(array.length).toBeLessThan(150);
      logs.push(...array);
    }
    expect(logs).toEqual(await getStoredLogs(server, seeded));
  });

  test("[LG-24] many followers that join together during writes read a long history completely and in order", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const lines = (name: string, count: number) => batch(...Array.from({ length: count }, (_, i) => `${name} ${i}`));
    for (let i = 0; i < 6; i++) await agent.patch(PATCH, lines(`before ${i}`, 450));
    const { store } = getContext(server);
    const scan = spyOn(store, "scan");
    const joining = Array.from({ length: 30 }, () => ownerClient(server, seeded).socket(toFollowPath(seeded)));
    for (let i = 0; i < 20; i++) await agent.patch(PATCH, lines(`during ${i}`, 20));
    const sockets = await Promise.all(joining);
    const seen = await Promise.all(sockets.map((socket) => collect(socket, 3100)));
    const pagesRead = scan.mock.calls.length;
    const truth = await getStoredLogs(server, seeded);
    expect(truth).toHaveLength(3100);
    for (const logs of seen) expect(logs).toEqual(truth);
    // Thirty separate readers would have requested six or seven pages each.
    expect(pagesRead).toBeLessThan(90);
    for (const socket of sockets) socket.close();
  });

  test("[LG-9] nothing of a refused batch reaches a follower", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "20" } });
    const seeded = await seedAgent(server);
    using socket = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await agentClient(server, seeded).patch(PATCH, batch("stays"));
    expect((await agentClient(server, seeded).fetch("PATCH", PATCH, batch("x".repeat(16)))).status).toBe(413);
    await supersedeAgent(server, seeded);
    expect((await socket.closed).code).toBe(1000);
    expect((await socket.json<AgentLog[]>()).map(({ output }) => output)).toEqual(["stays"]);
    expect(await socket.next()).toBeUndefined();
  });

  test("[LG-10] closes with 1000 after the last line when the agent is no longer in use", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    const last = agentClient(server, seeded).patch(PATCH, batch("last words"));
    await last;
    await supersedeAgent(server, seeded);
    expect(await socket.closed).toEqual({ code: 1000, reason: "the agent is no longer in use" });
    expect((await collect(socket, 1))[0]?.output).toBe("last words");
    using late = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    expect((await collect(late, 1))[0]?.output).toBe("last words");
    expect((await late.closed).code).toBe(1000);
  });

  test("[SK-1] a client that sends a message on a stream that accepts none is closed with 1008", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    using socket = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    await socket.json();
    for (let i = 0; i < 50; i++) socket.send("hello?");
    expect((await socket.closed).code).toBe(1008);
  });

  test("[SK-2] sockets above the limit are refused with 503, and closing one makes room", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_MAX_CONNECTIONS: "7" } });
    const seeded = await seedAgent(server);
    const owner = ownerClient(server, seeded);
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
    using again = await owner.socket(toFollowPath(seeded));
    expect(await again.json<AgentLog[]>()).toEqual([]);
    for (const socket of sockets) socket.close();
  });

  test("[SK-3] a reader that stops reading is closed with 1013 and gets the reason when it reads again; the others lose nothing", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "100000000" } });
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    using healthy = await ownerClient(server, seeded).socket(toFollowPath(seeded));
    expect(await healthy.json<AgentLog[]>()).toEqual([]);
    await using stalled = await openStalled(server.url, toFollowPath(seeded, "&no_compression"), seeded.owner_token);
    const { sockets } = getContext(server);
    const text = "y".repeat(1000);
    let sent = 0;
    const hasNoFollowers = () => sockets.countFollowers(`agent_logs_plain:${seeded.agent_id}`) === 0;
    await until(() => !hasNoFollowers(), { what: "the reader that will stall to follow live" });
    while (!hasNoFollowers() && sent < 40_000) {
      await agent.patch(PATCH, batch(...Array.from({ length: 100 }, () => text)));
      sent += 100;
    }
    expect(hasNoFollowers()).toBe(true);
    expect((await collect(healthy, sent)).length).toBe(sent);
    const end = await readLogs(stalled);
    expect(end.close).toEqual({ code: 1013, reason: "reader too slow, resume from the last id seen" });
    const truth = await getStoredLogs(server, seeded);
    // If a node forwards the stream, the sockets in between may buffer more than one response holds.
    expect(end.logs.slice(0, truth.length)).toEqual(truth.slice(0, end.logs.length));
    using resumed = await ownerClient(server, seeded).socket(toFollowPath(seeded, `&after=${end.logs.at(-1)?.id}`));
    expect([...end.logs, ...(await collect(resumed, sent - end.logs.length))].length).toBe(sent);
  });
});
