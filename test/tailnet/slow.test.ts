// Peers of the coordinator that do not read, or open too many tunnels: the server disconnects them, and other peers continue.
import { describe, expect, test } from "bun:test";
import { uuid, uuidToBytes } from "#base/ids.ts";
import { Coordinator } from "#src/tailnet/coordinator.ts";
import { createClientRules } from "#src/tailnet/peer-rules.ts";
import { CoordinateResponse_PeerUpdate_Kind as Kind } from "#src/wire/gen/tailnet_pb.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { connectTailnet, coordinate } from "./peers.ts";

describe("peers that do not read", () => {
  test("[TL-13] disconnects a peer with too long a queue, with a reason; other peers continue", async () => {
    const coordinator = new Coordinator();
    const rules = createClientRules(async () => undefined);
    const dropped: string[] = [];
    const stalled = coordinator.join({ id: uuid(), rules, dropped: (reason) => dropped.push(reason) });
    const reader = coordinator.join({ id: uuid(), rules });
    const sender = coordinator.join({ id: uuid(), rules });
    const received: number[] = [];
    const reading = (async () => {
      for await (const { peerUpdates = [] } of reader.responses()) {
        for (const { node, kind } of peerUpdates) received.push(kind === Kind.NODE ? Number(node?.id) : -Number(kind));
      }
    })();
    coordinator.addTunnel(stalled, sender.id);
    coordinator.addTunnel(reader, sender.id);
    coordinator.addTunnel(stalled, reader.id);
    for (let i = 1; i <= 2_000; i += 1) {
      sender.known = { node: { id: BigInt(i), key: Buffer.alloc(0) } as never, bytes: Buffer.from(String(i)) };
      coordinator.onNodeChange(sender);
      // Lets readers read in the next turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
    }
    sender.onStreamLost();
    reader.onStreamLost();
    await reading;
    expect(dropped).toEqual(["the peer does not read what it is sent"]);
    const remaining = [];
    for await (const response of stalled.responses()) remaining.push(response);
    expect(remaining).toEqual([{ error: "the peer does not read what it is sent" }]);
    expect(received).toEqual([...Array.from({ length: 2_000 }, (_, i) => i + 1), -Kind.LOST]);
    expect(coordinator.counts).toEqual({ peers: 0, tunnels: 0 });
  });

  test("[TL-13] limits the number of a peer's tunnels", () => {
    const coordinator = new Coordinator();
    const peer = coordinator.join({ id: uuid(), rules: createClientRules(async () => undefined) });
    for (let i = 0; i < 4_096; i += 1) expect(coordinator.addTunnel(peer, `agent ${i}`)).toBeUndefined();
    expect(coordinator.addTunnel(peer, "one more")).toContain("4096 tunnels");
    peer.onStreamLost();
    expect(coordinator.counts).toEqual({ peers: 0, tunnels: 0 });
  });
});

testInProcess(
  "[TL-13] disconnects a client that does not read its stream; another client of the same agent misses nothing",
  async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const path = `/api/v2/workspaceagents/${seeded.agent_id}/coordinate?version=2.0`;
    const tunnel = { addTunnel: { id: uuidToBytes(seeded.agent_id) } };
    const stalled = await connectTailnet(server, path, seeded.owner_token);
    await using reader = await connectTailnet(server, path, seeded.owner_token);
    await using agent = await connectAgent(server, seeded.agent_token);
    const unreadStream = await coordinate(stalled.tailnet);
    await unreadStream.send(tunnel);
    const readStream = await coordinate(reader.tailnet);
    await readStream.send(tunnel);
    // Calls on the same connections are answered after the server has processed the tunnels.
    await stalled.tailnet.postTelemetry({});
    await reader.tailnet.postTelemetry({});
    const sender = await coordinate(agent.tailnet);
    const padding = Array(10).fill("1".repeat(6_000));
    let isClosed = false;
    const closed = stalled.closed.finally(() => {
      isClosed = true;
    });
    for (let id = 1n; !isClosed; id += 1n) {
      await sender.send({ updateSelf: { node: { id, endpoints: padding } } });
      const update = await readStream.next();
      expect(typeof update === "string" ? update : update.node?.id).toBe(id);
    }
    expect(await closed).toEqual({ code: 1013, reason: "the peer does not read what it is sent" });
  },
);
