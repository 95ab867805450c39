// Agents and users' clients find each other through the coordinator, over real sockets.
import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { uuid, uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import { listAgentAddresses, parseSingleAddress } from "#src/tailnet/addresses.ts";
import {
  type CoordinateResponse_PeerUpdate,
  CoordinateResponse_PeerUpdate_Kind as Kind,
} from "#src/wire/gen/tailnet_pb.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { describeInProcess, testInProcess } from "#test/support/in-process.ts";
import { getContext, type SeededAgent, seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { connectTailnet, coordinate, RelayPeer } from "./peers.ts";

let server: TestServer;
let seeded: SeededAgent;
beforeAll(async () => {
  if (process.env.SLIPWAY_TEST_BINARY !== undefined) return;
  server = await startTestServer();
});
// A separate agent for each test, because an earlier test's connections are released with a delay.
beforeEach(async () => {
  if (process.env.SLIPWAY_TEST_BINARY === undefined) seeded = await seedAgent(server);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

const coordinatePath = (agent_id: string): string => `/api/v2/workspaceagents/${agent_id}/coordinate?version=2.0`;
const connectClient = (path = coordinatePath(seeded.agent_id), token = seeded.owner_token) =>
  connectTailnet(server, path, token);
const connectSeededAgent = (target: SeededAgent = seeded) => connectAgent(server, target.agent_token);
const getCounts = () => getContext(server).tailnet.coordinator.counts;

const makeUpdate = (id: string, node: object = {}) => {
  const [address = ""] = listAgentAddresses(id).map((host) => `${host.slice(1, -1)}/128`);
  return { updateSelf: { node: { preferredDerp: 999, addresses: [address], allowedIps: [address], ...node } } };
};
const makeTunnel = (id: string) => ({ addTunnel: { id: uuidToBytes(id) } });
const makeReady = (...ids: string[]) => ({ readyForHandshake: ids.map((id) => ({ id: uuidToBytes(id) })) });

/** Returns an update's kind, its peer's ID and its node's ID, or the text of an error. */
const abbreviate = (received: CoordinateResponse_PeerUpdate | string): [string, string, number?] | string =>
  typeof received === "string"
    ? received
    : [
        Kind[received.kind],
        uuidFromBytes(received.id),
        ...(received.node ? ([Number(received.node.id)] as const) : ([] as const)),
      ];
const nextUpdate = async (stream: Awaited<ReturnType<typeof coordinate>>): Promise<CoordinateResponse_PeerUpdate> => {
  const received = await stream.next();
  if (typeof received === "string") throw new Error(received);
  return received;
};

describeInProcess("connecting peers", () => {
  testInProcess(
    "[TL-8] a client and an agent exchange nodes, the agent reports that it is ready, and packets go through the relay",
    async () => {
      await using agentSide = await connectSeededAgent();
      await using clientSide = await connectClient();
      await using agentRelay = await RelayPeer.join(server);
      await using clientRelay = await RelayPeer.join(server);
      const key = (peer: RelayPeer) => Buffer.concat([Buffer.from("np"), peer.pair.public]);

      const agentStream = await coordinate(agentSide.tailnet);
      await agentStream.send(
        makeUpdate(seeded.agent_id, { id: 1n, key: key(agentRelay), disco: `discokey:${"a".repeat(64)}` }),
      );
      const clientStream = await coordinate(clientSide.tailnet);
      await clientStream.send({
        ...makeUpdate(uuid(), { id: 2n, key: key(clientRelay) }),
        ...makeTunnel(seeded.agent_id),
      });

      const clientUpdate = await nextUpdate(clientStream);
      expect(abbreviate(clientUpdate)).toEqual(["NODE", seeded.agent_id, 1]);
      expect(clientUpdate.node).toMatchObject({ preferredDerp: 999, disco: `discokey:${"a".repeat(64)}` });
      const agentUpdate = await nextUpdate(agentStream);
      const client_id = uuidFromBytes(agentUpdate.id);
      expect(abbreviate(agentUpdate)).toEqual(["NODE", client_id, 2]);

      await agentStream.send(makeReady(client_id));
      expect(abbreviate(await clientStream.next())).toEqual(["READY_FOR_HANDSHAKE", seeded.agent_id]);

      clientRelay.sendPacket(clientUpdate.node?.key.subarray(2) as Uint8Array, "handshake");
      expect(await agentRelay.receiveText()).toEqual({ from: clientRelay.address, text: "handshake" });
      agentRelay.sendPacket(agentUpdate.node?.key.subarray(2) as Uint8Array, "response");
      expect(await clientRelay.receiveText()).toEqual({ from: agentRelay.address, text: "response" });

      await clientStream.send({ disconnect: {} });
      expect(abbreviate(await agentStream.next())).toEqual(["DISCONNECTED", client_id]);
      expect(await clientStream.next()).toBe("end");
      await agentStream.send({ disconnect: {} });
      expect(await agentStream.next()).toBe("end");
      expect(getCounts()).toEqual({ peers: 0, tunnels: 0 });
    },
  );

  testInProcess(
    "[TL-9] a tunnel may be opened before its agent connects; known nodes are not resent; lost differs from disconnected",
    async () => {
      await using clientSide = await connectClient();
      const clientStream = await coordinate(clientSide.tailnet);
      await clientStream.send({ ...makeUpdate(uuid(), { id: 2n }), ...makeTunnel(seeded.agent_id) });
      await clientSide.tailnet.postTelemetry({ events: [{ application: "test" }] });
      let client_id = "";
      {
        await using agentSide = await connectSeededAgent();
        const agentStream = await coordinate(agentSide.tailnet);
        const firstUpdate = await nextUpdate(agentStream);
        client_id = uuidFromBytes(firstUpdate.id);
        expect(abbreviate(firstUpdate)).toEqual(["NODE", client_id, 2]);
        await agentStream.send(makeUpdate(seeded.agent_id, { id: 1n }));
        await agentStream.send(makeUpdate(seeded.agent_id, { id: 1n }));
        await agentStream.send(makeUpdate(seeded.agent_id, { id: 3n }));
        expect(abbreviate(await clientStream.next())).toEqual(["NODE", seeded.agent_id, 1]);
        expect(abbreviate(await clientStream.next())).toEqual(["NODE", seeded.agent_id, 3]);
      }
      expect(abbreviate(await clientStream.next())).toEqual(["LOST", seeded.agent_id]);
      await using reconnectedAgent = await connectSeededAgent();
      const agentStream = await coordinate(reconnectedAgent.tailnet);
      expect(abbreviate(await agentStream.next())).toEqual(["NODE", client_id, 2]);
      // The agent disconnects before it has sent its node, so no peer is notified of its end.
      await agentStream.send({ disconnect: {} });
      expect(await agentStream.next()).toBe("end");
      const newStream = await coordinate(reconnectedAgent.tailnet);
      await newStream.send(makeUpdate(seeded.agent_id, { id: 4n }));
      expect(abbreviate(await clientStream.next())).toEqual(["NODE", seeded.agent_id, 4]);
      expect(abbreviate(await newStream.next())).toEqual(["NODE", client_id, 2]);
      await clientStream.send({ removeTunnel: { id: uuidToBytes(seeded.agent_id) } });
      expect(abbreviate(await clientStream.next())).toEqual(["DISCONNECTED", seeded.agent_id]);
      expect(abbreviate(await newStream.next())).toEqual(["DISCONNECTED", client_id]);
      await newStream.send(makeReady(client_id));
      expect(await newStream.next()).toContain("ready for handshake error");
      // The client can open the tunnel again.
      await clientStream.send(makeTunnel(seeded.agent_id));
      expect(abbreviate(await newStream.next())).toEqual(["NODE", client_id, 2]);
    },
  );

  testInProcess("[TL-14] a peer's new stream replaces the old one and gets the same nodes", async () => {
    await using clientSide = await connectClient();
    const clientStream = await coordinate(clientSide.tailnet);
    await clientStream.send({ ...makeUpdate(uuid(), { id: 2n }), ...makeTunnel(seeded.agent_id) });
    await using agentSide = await connectSeededAgent();
    const first = await coordinate(agentSide.tailnet);
    await first.send(makeUpdate(seeded.agent_id, { id: 1n }));
    expect(abbreviate(await clientStream.next())).toEqual(["NODE", seeded.agent_id, 1]);
    expect((await nextUpdate(first)).kind).toBe(Kind.NODE);
    const second = await coordinate(agentSide.tailnet);
    expect((await nextUpdate(second)).node?.id).toBe(2n);
    expect(await first.next()).toBe("peer ID overwritten by new connection");
    expect(await first.next()).toBe("end");
    await second.send(makeUpdate(seeded.agent_id, { id: 5n }));
    expect(abbreviate(await clientStream.next())).toEqual(["NODE", seeded.agent_id, 5]);
  });
});

describeInProcess("permissions of peers", () => {
  testInProcess(
    "[TL-10] invalid versions, tokens and resume tokens are refused with the messages that clients expect",
    async () => {
      const requestUpgrade = async (path: string, token: string) => {
        const headers = { "Coder-Session-Token": token, upgrade: "websocket", connection: "upgrade" };
        const response = await fetch(new URL(path, server.url), { headers });
        const body = (await response.json()) as { message: string; validations?: { field: string }[] };
        return [response.status, body.message, body.validations?.[0]?.field];
      };
      const versionError = [400, "Unknown or unsupported API version", "version"];
      const base = `/api/v2/workspaceagents/${seeded.agent_id}/coordinate`;
      for (const query of ["?version=3.0", "?version=1.x", "?version=x"])
        expect(await requestUpgrade(base + query, seeded.owner_token)).toEqual(versionError);
      expect(await requestUpgrade("/api/v2/tailnet?version=3.0", seeded.owner_token)).toEqual(versionError);
      const resumeError = [401, "Invalid resume token", "resume_token"];
      // A request without a version is accepted as the newest version of clients that send none.
      expect(await requestUpgrade(`${base}?resume_token=made-up`, seeded.owner_token)).toEqual(resumeError);
      for (const path of [
        `${base}?version=1.0`,
        `${base}?version=1.1`,
        `${base}?version=2.0`,
        "/api/v2/tailnet?version=2.3",
      ])
        expect(await requestUpgrade(`${path}&resume_token=made-up`, seeded.owner_token)).toEqual(resumeError);
      const outsider = await seedUser(server);
      expect((await requestUpgrade(base, outsider.token))[0]).toBe(404);
      expect((await requestUpgrade(base, seeded.agent_token))[0]).toBe(401);
      const otherAgent = await seedAgent(server);
      expect((await requestUpgrade(coordinatePath(otherAgent.agent_id), seeded.owner_token))[0]).toBe(404);
    },
  );

  testInProcess(
    "[TL-11] an agent may use only its own addresses and open no tunnels; a violation ends its stream, not its connection",
    async () => {
      await using agentSide = await connectSeededAgent();
      const otherId = uuid();
      const ownAddress = `${listAgentAddresses(seeded.agent_id)[0]?.slice(1, -1)}`;
      const problems: [object, string][] = [
        [makeUpdate(otherId), "invalid node address"],
        [makeUpdate(seeded.agent_id, { allowedIps: ["fd7a:115c:a1e0::/48"] }), "invalid address bits"],
        [makeUpdate(seeded.agent_id, { addresses: [`${ownAddress}/127`] }), "invalid address bits"],
        [makeUpdate(seeded.agent_id, { addresses: ["10.0.0.1/32"] }), "invalid address bits"],
        [makeUpdate(seeded.agent_id, { allowedIps: ["nonsense"] }), "invalid address bits"],
        [makeUpdate(seeded.agent_id, { endpoints: Array(2_000).fill("x".repeat(100)) }), "is too large"],
        [{ updateSelf: {} }, "an update without a node"],
        [makeTunnel(otherId), "agents cannot open tunnels"],
      ];
      for (const [request, reason] of problems) {
        const stream = await coordinate(agentSide.tailnet);
        await stream.send(request);
        expect(await stream.next()).toContain(reason);
        expect(await stream.next()).toBe("end");
      }
      const stream = await coordinate(agentSide.tailnet);
      await stream.send(
        makeUpdate(seeded.agent_id, {
          addresses: listAgentAddresses(seeded.agent_id).map((host) => `${host.slice(1, -1)}/128`),
        }),
      );
      await stream.send(makeReady(otherId));
      expect(await stream.next()).toContain("ready for handshake error");
      await agentSide.agent.getServiceBanner({});
    },
  );

  testInProcess("[TL-11] an agent's addresses are derived from its ID", () => {
    const [first, second] = listAgentAddresses("00112233-4455-6677-8899-aabbccddeeff");
    expect([first, second]).toEqual([
      "[fd7a:115c:a1e0:6677:8899:aabb:ccdd:eeff]",
      "[fd60:627a:a42b:6677:8899:aabb:ccdd:eeff]",
    ]);
    expect(parseSingleAddress("FD7A:115C:A1E0:6677:8899:AABB:CCDD:EEFF/128")).toBe(first as string);
    for (const invalid of ["", "::1", "::1/64", "::1/128/128", "1.2.3.4/128", "a]b:c/128", "::1%eth0/128", "::g/128"])
      expect(parseSingleAddress(invalid)).toBeUndefined();
  });

  testInProcess(
    "[TL-12] a client of one agent opens tunnels only to that agent, and reports no readiness",
    async () => {
      const otherAgent = await seedAgent(server);
      const problems: [object, string][] = [
        [makeTunnel(otherAgent.agent_id), "for one agent only"],
        [{ addTunnel: { id: new Uint8Array(3) } }, "no valid id"],
        [makeReady(seeded.agent_id), "only agents"],
        [makeUpdate(uuid(), { addresses: ["fd7a::/64"] }), "invalid address bits"],
      ];
      await using connection = await connectClient();
      for (const [request, reason] of problems) {
        const stream = await coordinate(connection.tailnet);
        await stream.send(request);
        expect(await stream.next()).toContain(reason);
        expect(await stream.next()).toBe("end");
      }
    },
  );

  testInProcess(
    "[TL-12] a client of all agents may open tunnels to an agent as long as its user may access the agent",
    async () => {
      const shared = await seedAgent(server);
      const hidden = await seedAgent(server);
      const guest = await seedUser(server, { organization_id: shared.organization_id });
      const { store, topics } = getContext(server);
      await store.commit([updateWorkspace(shared.workspace_id, { user_acl: { [guest.user_id]: "use" } })]);
      await using agentSide = await connectSeededAgent(shared);
      const agentStream = await coordinate(agentSide.tailnet);
      await agentStream.send(makeUpdate(shared.agent_id, { id: 1n }));
      await using connection = await connectClient("/api/v2/tailnet?version=2.3", guest.token);
      for (const id of [hidden.agent_id, uuid()]) {
        const stream = await coordinate(connection.tailnet);
        await stream.send(makeTunnel(id));
        expect(await stream.next()).toContain("not found or you do not have permission");
      }
      const stream = await coordinate(connection.tailnet);
      await stream.send({ ...makeUpdate(uuid(), { id: 2n }), ...makeTunnel(shared.agent_id) });
      expect(abbreviate(await stream.next())).toEqual(["NODE", shared.agent_id, 1]);
      expect((await nextUpdate(agentStream)).kind).toBe(Kind.NODE);
      await store.commit([updateWorkspace(shared.workspace_id, { user_acl: {} })]);
      topics.publish("access_changed", shared.workspace_id, {});
      expect(abbreviate(await stream.next())).toEqual(["DISCONNECTED", shared.agent_id]);
      expect((await nextUpdate(agentStream)).kind).toBe(Kind.DISCONNECTED);
      await stream.send(makeTunnel(shared.agent_id));
      expect(await stream.next()).toContain("not found or you do not have permission");
    },
  );

  testInProcess(
    "[TL-12] revoked access to a workspace ends connections to its agent, and a revoked key ends every connection",
    async () => {
      const shared = await seedAgent(server);
      const guest = await seedUser(server, { organization_id: shared.organization_id });
      const { store, topics } = getContext(server);
      await store.commit([updateWorkspace(shared.workspace_id, { user_acl: { [guest.user_id]: "use" } })]);
      const agentConnection = await connectClient(coordinatePath(shared.agent_id), guest.token);
      await agentConnection.tailnet.postTelemetry({});
      await store.commit([updateWorkspace(shared.workspace_id, { user_acl: {} })]);
      topics.publish("access_changed", shared.workspace_id, {});
      expect((await agentConnection.closed).code).toBe(1008);
      const allAgentsConnection = await connectClient("/api/v2/tailnet", guest.token);
      const relayMapSocket = new WebSocket(
        Object.assign(new URL("/api/v2/derp-map", server.url), { protocol: "ws:" }),
        {
          headers: { "Coder-Session-Token": guest.token },
        } as never,
      );
      const relayMapClosed = new Promise<number>((resolve) => {
        relayMapSocket.onclose = ({ code }) => resolve(code);
      });
      await new Promise((resolve) => {
        relayMapSocket.onmessage = resolve;
      });
      await allAgentsConnection.tailnet.postTelemetry({});
      topics.publish("key_gone", guest.user_id, {});
      expect([(await allAgentsConnection.closed).code, await relayMapClosed]).toEqual([1008, 1008]);
    },
  );

  testInProcess("[TL-12] a newer build disconnects the old agent, and its clients learn that it is lost", async () => {
    const oldAgent = await seedAgent(server);
    await using connection = await connectClient(coordinatePath(oldAgent.agent_id), oldAgent.owner_token);
    const stream = await coordinate(connection.tailnet);
    await stream.send(makeTunnel(oldAgent.agent_id));
    await using agentSide = await connectSeededAgent(oldAgent);
    const agentStream = await coordinate(agentSide.tailnet);
    await agentStream.send(makeUpdate(oldAgent.agent_id, { id: 1n }));
    expect(abbreviate(await stream.next())).toEqual(["NODE", oldAgent.agent_id, 1]);
    await supersedeAgent(server, oldAgent);
    expect(abbreviate(await stream.next())).toEqual(["LOST", oldAgent.agent_id]);
  });
});

describeInProcess("resuming", () => {
  testInProcess(
    "[TL-14] a resume token restores the client's peer ID; for another user or endpoint, the response is 401",
    async () => {
      await using agentSide = await connectSeededAgent();
      const agentStream = await coordinate(agentSide.tailnet);
      const openTunnel = async (path: string) => {
        await using connection = await connectClient(path);
        const stream = await coordinate(connection.tailnet);
        await stream.send({ ...makeUpdate(uuid(), { id: 2n }), ...makeTunnel(seeded.agent_id) });
        const firstUpdate = await nextUpdate(agentStream);
        const resumeToken = await connection.tailnet.refreshResumeToken({});
        await stream.send({ disconnect: {} });
        expect((await nextUpdate(agentStream)).kind).toBe(Kind.DISCONNECTED);
        return { id: uuidFromBytes(firstUpdate.id), ...resumeToken };
      };
      for (const path of [coordinatePath(seeded.agent_id), "/api/v2/tailnet?version=2.3"]) {
        const first = await openTunnel(path);
        expect(first.refreshIn?.seconds).toBe(43_200n);
        const now = getContext(server).clock.now() / 1000;
        expect(Math.abs(Number(first.expiresAt?.seconds) - now - 86_400)).toBeLessThan(60);
        const query = `&resume_token=${encodeURIComponent(first.token)}`;
        expect((await openTunnel(path + query)).id).toBe(first.id);
        expect((await openTunnel(path)).id).not.toBe(first.id);
        const outsider = await seedUser(server);
        const otherPath = path.startsWith("/api/v2/tailnet")
          ? coordinatePath(seeded.agent_id)
          : "/api/v2/tailnet?version=2.3";
        for (const [requestPath, token] of [
          ["/api/v2/tailnet?version=2.3", outsider.token],
          [otherPath, seeded.owner_token],
        ] as const) {
          const headers = { "Coder-Session-Token": token };
          const response = await fetch(new URL(requestPath + query, server.url), { headers });
          expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
            401,
            "Invalid resume token",
          ]);
        }
      }
    },
  );

  testInProcess("[TL-14] a resume token is valid for 24 hours", async () => {
    const { makeResumeToken, openResumeToken } = await import("#src/api/tailnet/resume-token.ts");
    const { encryption } = getContext(server);
    const id = uuid();
    const { token, expires_at } = makeResumeToken(encryption, id, "tailnet:a", 1_000);
    expect(expires_at).toBe(1_000 + 86_400_000);
    expect(openResumeToken(encryption, token, "tailnet:a", expires_at - 1)).toBe(id);
    expect(openResumeToken(encryption, token, "tailnet:a", expires_at)).toBeUndefined();
    expect(openResumeToken(encryption, token, "tailnet:b", 0)).toBeUndefined();
    const altered = `${token.slice(0, -9)}${token.at(-9) === "x" ? "y" : "x"}${token.slice(-8)}`;
    expect(openResumeToken(encryption, altered, "tailnet:a", 0)).toBeUndefined();
  });
});
