// Slipway's peers with the real coordinator and the real relay: connections, pings, and failures of parts of the path.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { describeInProcess, testInProcess as test } from "#test/support/in-process.ts";
import { startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { joinClientPeer, openSeededWorld } from "./world.ts";

const server = await forFile(startTestServer());

const decodeText = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describeInProcess("an agent's peer", () => {
  test("[TL-27] accepts connections through coordinator and relay, and refuses ports without a listener", async () => {
    await using world = await openSeededWorld(server);
    const { client, seeded } = world;
    const connection = await client.peer.dial(seeded.agent_id, 8_080);
    await connection.write(bytes("hello"));
    expect(decodeText(await connection.read())).toBe("hello");
    await connection.end();
    expect(await connection.read()).toBeUndefined();
    expect(await connection.closed).toBeUndefined();
    await expect(client.peer.dial(seeded.agent_id, 9)).rejects.toMatchObject({ failure: "refused" });
  });

  test("[TL-27] answers pings through the tunnel", async () => {
    await using world = await openSeededWorld(server);
    const roundTripMs = await world.client.peer.ping(world.seeded.agent_id, 5_000);
    expect(roundTripMs).toBeGreaterThan(0);
    expect(roundTripMs).toBeLessThan(5_000);
  });

  test("[TL-27] transfers megabytes in both directions concurrently without loss", async () => {
    await using world = await openSeededWorld(server);
    const connection = await world.client.peer.dial(world.seeded.agent_id, 80);
    const block = crypto.getRandomValues(new Uint8Array(65_536));
    const [sentHash, receivedHash] = [new Bun.CryptoHasher("sha1"), new Bun.CryptoHasher("sha1")];
    const writing = (async () => {
      for (let i = 0; i < 100; i += 1) {
        sentHash.update(block);
        await connection.write(block);
      }
      await connection.end();
    })();
    for await (const chunk of connection) receivedHash.update(chunk);
    await writing;
    expect(receivedHash.digest("hex")).toBe(sentHash.digest("hex"));
  });

  test("[TL-28] keeps its connections while either side's coordinator connection is interrupted", async () => {
    await using world = await openSeededWorld(server);
    const { client, agent, seeded } = world;
    const connection = await client.peer.dial(seeded.agent_id, 80);
    const expectEcho = async (text: string): Promise<void> => {
      await connection.write(bytes(text));
      expect(decodeText(await connection.read())).toBe(text);
    };
    await expectEcho("before");
    await agent.loseCoordinator();
    await expectEcho("without the agent's connection");
    await client.loseCoordinator();
    await expectEcho("without both connections");
    await agent.reconnect();
    await client.reconnect();
    await expectEcho("after");
    await (await client.peer.dial(seeded.agent_id, 81)).end();
  });
});

describeInProcess("revoked access", () => {
  const openTunnel = async () => {
    const world = await openSeededWorld(server);
    const { client, agent, seeded } = world;
    const connection = await client.peer.dial(seeded.agent_id, 80);
    await connection.write(bytes("in"));
    await connection.read();
    const [remote] = agent.peer.remotes;
    const cutOffMs = new Promise<number>((resolve) => {
      const startedAt = performance.now();
      remote?.over.signal.addEventListener("abort", () => resolve(performance.now() - startedAt));
    });
    const key = new Client(server.url, seeded.owner_token);
    return { world, cutOffMs, revoke: () => key.post("/api/v2/users/logout") };
  };

  test("[TL-28] closes an active tunnel at the agent within a second", async () => {
    const { world, cutOffMs, revoke } = await openTunnel();
    await using _world = world;
    await revoke();
    expect(await cutOffMs).toBeLessThan(1_000);
    expect(world.agent.peer.remotes).toEqual([]);
    expect((await world.client.closed).code).toBe(1008);
  });

  test("[TL-28] also closes the tunnel of a client that has lost its connection to the coordinator", async () => {
    const { world, cutOffMs, revoke } = await openTunnel();
    await using _world = world;
    await world.client.loseCoordinator();
    const second = await joinClientPeer(server, world.seeded.agent_id, world.seeded.owner_token);
    await using _second = second;
    expect(await world.client.peer.ping(world.seeded.agent_id, 5_000)).toBeGreaterThan(0);
    await revoke();
    expect(await cutOffMs).toBeLessThan(1_500);
    await until(() => world.agent.peer.remotes.length === 0);
  });
});
