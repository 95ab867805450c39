// Peers of the coordinator that do not read, or open too many tunnels: they are disconnected, and the others continue.
import { describe, expect, test } from "bun:test";
import { uuid, uuidToBytes } from "#base/ids.ts";
import { Coordinator } from "#src/tailnet/coordinator.ts";
import { createClientRules } from "#src/tailnet/peer-rules.ts";
import { CoordinateResponse_PeerUpdate_Kind as Kind } from "#src/wire/gen/tailnet_pb.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { testInside } from "#test/support/inside.ts";
import { seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { connectTailnet, coordinate } from "./peers.ts";

describe("peers that do not read", () => {
  test("[TL-13] a peer whose queue is too long is dropped with a reason; the others continue", async () => {
    const coordinator = new Coordinator();
    const rules = createClientRules(async () => undefined);
    const dropped: string[] = [];
    const slow = coordinator.join({ id: uuid(), rules, dropped: (reason) => dropped.push(reason) });
    const quick = coordinator.join({ id: uuid(), rules });
    const talker = coordinator.join({ id: uuid(), rules });
    const seen: number[] = [];
    const reading = (async () => {
      for await (const { peerUpdates = [] } of quick.responses()) {
        for (const { node, kind } of peerUpdates) seen.push(kind === Kind.NODE ? Number(node?.id) : -Number(kind));
      }
    })();
    coordinator.addTunnel(slow, talker.id);
    coordinator.addTunnel(quick, talker.id);
    coordinator.addTunnel(slow, quick.id);
    for (let i = 1; i <= 2_000; i += 1) {
      talker.known = { node: { id: BigInt(i), key: Buffer.alloc(0) } as never, bytes: Buffer.from(String(i)) };
      coordinator.onNodeChange(talker);
      // Waits for a turn of the event loop, in which readers read.
      await new Promise((resolve) => setImmediate(resolve));
    }
    talker.onStreamLost();
    quick.onStreamLost();
    await reading;
    expect(dropped).toEqual(["the peer does not read what it is sent"]);
    const remaining = [];
    for await (const response of slow.responses()) remaining.push(response);
    expect(remaining).toEqual([{ error: "the peer does not read what it is sent" }]);
    expect(seen).toEqual([...Array.from({ length: 2_000 }, (_, i) => i + 1), -Kind.LOST]);
    expect(coordinator.counts).toEqual({ peers: 0, tunnels: 0 });
  });

  test("[TL-13] the number of tunnels per peer is bounded", () => {
    const coordinator = new Coordinator();
    const peer = coordinator.join({ id: uuid(), rules: createClientRules(async () => undefined) });
    for (let i = 0; i < 4_096; i += 1) expect(coordinator.addTunnel(peer, `agent ${i}`)).toBeUndefined();
    expect(coordinator.addTunnel(peer, "one more")).toContain("4096 tunnels");
    peer.onStreamLost();
    expect(coordinator.counts).toEqual({ peers: 0, tunnels: 0 });
  });
});

testInside(
  "[TL-13] a client that does not read its stream is closed with a reason; another client of the same agent misses nothing",
  async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const path = `/api/v2/workspaceagents/${seeded.agent_id}/coordinate?version=2.0`;
    const tunnel = { addTunnel: { id: uuidToBytes(seeded.agent_id) } };
    const slow = await connectTailnet(server, path, seeded.owner_token);
    await using quick = await connectTailnet(server, path, seeded.owner_token);
    await using agent = await connectAgent(server, seeded.agent_token);
    const unread = await coordinate(slow.tailnet);
    await unread.send(tunnel);
    const read = await coordinate(quick.tailnet);
    await read.send(tunnel);
    // Waits for calls on the same connections, which are answered after the tunnels were processed.
    await slow.tailnet.postTelemetry({});
    await quick.tailnet.postTelemetry({});
    const talker = await coordinate(agent.tailnet);
    const padding = Array(10).fill("1".repeat(6_000));
    let isOver = false;
    const over = slow.closed.finally(() => {
      isOver = true;
    });
    for (let id = 1n; !isOver; id += 1n) {
      await talker.send({ updateSelf: { node: { id, endpoints: padding } } });
      const update = await read.next();
      expect(typeof update === "string" ? update : update.node?.id).toBe(id);
    }
    expect(await over).toEqual({ code: 1013, reason: "the peer does not read what it is sent" });
  },
);
