import { describe, expect, test } from "bun:test";
import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { Agent, type AgentHandlers, createAgentClient } from "#src/wire/agent-api.ts";
import { call } from "#src/wire/drpc/client.ts";
import { serveSession } from "#src/wire/drpc/server.ts";
import { hasMoreFields } from "#src/wire/field-count.ts";
import { AppHealth, Lifecycle_State, UpdateStatsRequestSchema } from "#src/wire/gen/agent_pb.ts";
import { CoordinateResponse_PeerUpdate_Kind, DERPMapSchema } from "#src/wire/gen/tailnet_pb.ts";
import { createRouter, mergeRouters, toMethodPath } from "#src/wire/service.ts";
import { createTailnetClient, Tailnet, type TailnetHandlers } from "#src/wire/tailnet-api.ts";
import { hex, sessionPair } from "./support.ts";

const uuid = hex("00112233445566778899aabbccddeeff");

const servePair = (agent: Partial<AgentHandlers>, tailnet: Partial<TailnetHandlers> = {}) => {
  const pair = sessionPair();
  const router = mergeRouters(createRouter(Agent, agent), createRouter(Tailnet, tailnet));
  void serveSession(pair.server, router, { clock: pair.clock });
  return { agent: createAgentClient(pair.client), tailnet: createTailnetClient(pair.client), ...pair };
};

describe("the agent's services", () => {
  test("[WI-16] have the paths that deployed agents call", () => {
    const paths = [...Agent.methods, ...Tailnet.methods].map(toMethodPath);
    expect(paths).toContain("/coder.agent.v2.Agent/GetManifest");
    expect(paths).toContain("/coder.tailnet.v2.Tailnet/Coordinate");
    expect(paths).toHaveLength(24);
    expect(Tailnet.method.coordinate.methodKind).toBe("bidi_streaming");
    expect(Tailnet.method.streamDERPMaps.methodKind).toBe("server_streaming");
    expect(Tailnet.method.workspaceUpdates.methodKind).toBe("server_streaming");
  });

  test("[WI-16] carry typed messages both ways, including empty submessages", async () => {
    const { agent } = servePair({
      getManifest: () => ({
        agentId: uuid,
        environmentVariables: { A: "1" },
        derpMap: { homeParams: {}, regions: { 999: { regionId: 999n, embeddedRelay: true } } },
        apps: [{ slug: "web", healthcheck: {} }],
      }),
      updateLifecycle: ({ lifecycle }) => lifecycle ?? {},
      batchUpdateAppHealths: ({ updates }) => {
        expect(updates[0]?.health).toBe(AppHealth.HEALTHY);
        return {};
      },
    });
    const manifest = await agent.getManifest({});
    expect(manifest.agentId).toEqual(uuid);
    expect(manifest.parentId).toBeUndefined();
    expect(manifest.derpMap?.homeParams).toBeDefined();
    expect(manifest.derpMap?.regions["999"]?.embeddedRelay).toBe(true);
    expect(manifest.apps[0]?.healthcheck).toBeDefined();
    const answer = await agent.updateLifecycle({ lifecycle: { state: Lifecycle_State.READY } });
    expect(answer.state).toBe(Lifecycle_State.READY);
    await agent.batchUpdateAppHealths({ updates: [{ id: uuid, health: AppHealth.HEALTHY }] });
  });

  test("[WI-16] write an empty relay map entry as tag and length 0, as agents expect", async () => {
    const { client } = servePair({ getManifest: () => ({ derpMap: { homeParams: {} } }) });
    expect(await call(client, "/coder.agent.v2.Agent/GetManifest", hex(""))).toEqual(hex("4a 02 0a 00"));
  });

  test("[WI-14] return code 12 without a handler, and an error for invalid message bytes", async () => {
    const { agent, client } = servePair({ updateStats: () => ({}) });
    await expect(agent.listSubAgents({})).rejects.toMatchObject({ code: 12 });
    await expect(call(client, "/coder.agent.v2.Agent/UpdateStats", hex("0a ff"))).rejects.toMatchObject({
      code: 0,
      message: "The request is not a coder.agent.v2.UpdateStatsRequest.",
    });
  });

  test("[WI-18] refuse a request with too many fields before it is decoded", async () => {
    let pushed = 0;
    const { agent, client } = servePair({
      pushResourcesMonitoringUsage: ({ datapoints }) => {
        pushed = datapoints.length;
        return {};
      },
    });
    const push = (count: number) =>
      call(client, "/coder.agent.v2.Agent/PushResourcesMonitoringUsage", hex("0a 00".repeat(count)));
    await push(20_000);
    expect(pushed).toBe(20_000);
    await expect(push(20_001)).rejects.toThrow("more than 20000 fields");
    await agent.pushResourcesMonitoringUsage({ datapoints: [{}] });
    expect(pushed).toBe(1);
  });

  test("[WI-18] count fields in messages, maps, lists and unknown fields, and stop at invalid bytes", () => {
    const countFields = (schema: DescMessage, bytes: Uint8Array): number => {
      let count = 0;
      while (hasMoreFields(schema, bytes, count)) count += 1;
      return count;
    };
    const encodeMessage = (schema: DescMessage, message: Record<string, unknown>): Uint8Array =>
      toBinary(schema, create(schema, message));
    const stats = { stats: { connectionsByProto: { ssh: 1n, web: 2n }, metrics: [{ labels: [{ name: "a" }, {}] }] } };
    // The stats; two map entries with key and value; a metric with two labels, one of which has a name.
    expect(countFields(UpdateStatsRequestSchema, encodeMessage(UpdateStatsRequestSchema, stats))).toBe(
      1 + 2 * 3 + 3 + 1,
    );
    const map = { regions: { 7: { regionId: 7n, nodes: [{ name: "a" }] } } };
    expect(countFields(DERPMapSchema, encodeMessage(DERPMapSchema, map))).toBe(1 + 2 + 1 + 2);
    expect(countFields(UpdateStatsRequestSchema, hex("f8 06 01 fa 06 02 0a 00"))).toBe(2);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        hasMoreFields(UpdateStatsRequestSchema, bytes, 1_000);
      }),
    );
  });

  test("[WI-16] stream relay maps and coordinate both ways", async () => {
    const { tailnet } = servePair(
      {},
      {
        async *streamDERPMaps() {
          yield { homeParams: {} };
          yield { homeParams: {}, regions: { 1: { regionCode: "one" } } };
        },
        async *coordinate(requests) {
          for await (const request of requests) {
            if (request.disconnect) return;
            yield { peerUpdates: [{ id: request.addTunnel?.id, kind: CoordinateResponse_PeerUpdate_Kind.NODE }] };
          }
        },
      },
    );
    const codes: (string | undefined)[] = [];
    for await (const map of tailnet.streamDERPMaps({})) codes.push(map.regions["1"]?.regionCode);
    expect(codes).toEqual([undefined, "one"]);
    const coordinate = await tailnet.coordinate();
    await coordinate.send({ addTunnel: { id: uuid } });
    const answers = coordinate[Symbol.asyncIterator]();
    const first = await answers.next();
    expect(first.value.peerUpdates[0]?.id).toEqual(uuid);
    await coordinate.send({ disconnect: {} });
    expect((await answers.next()).done).toBe(true);
  });
});
