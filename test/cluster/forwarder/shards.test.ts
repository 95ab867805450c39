// With several active nodes, requests to any node reach the one that has their shard, over real sockets.
import { afterEach, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { address } from "#base/config/kinds.ts";
import { sha256 } from "#base/ids.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";
import { pause } from "#base/retry.ts";
import { decline, parseForwardedAddress } from "#src/cluster/forwarded-header.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

const TOKEN = "the-token-of-the-nodes";
const STATE = { node: "active", lease: "held", database: "answers", standby: "connected" } as const;
const MEBIBYTE = 1024 * 1024;

const openServers: { stop(): void }[] = [];
afterEach(() => {
  for (const server of openServers.splice(0)) server.stop();
});

/**
 * Starts one node per list, which owns the listed shards. A request for `/part/N` belongs to shard N; the response names the node that
 * handled it.
 */
const startNodes = (...lists: number[][]) => startNodesWithLookup(undefined, ...lists);

/** `shardOf` returns the shard that a node assumes for a request's path. */
const startNodesWithLookup = (shardOf: ((path: string) => number | undefined) | undefined, ...lists: number[][]) => {
  const ownedShards = lists.map((list) => new Set(list));
  const ports: number[] = [];
  const toAddress = (port: number | undefined) => (port === undefined ? undefined : { hostname: "127.0.0.1", port });
  const requests: string[] = [];
  const nodes = ownedShards.map((shards, i) => {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const client = parseForwardedAddress(request.headers.get(NODE_HEADER), sha256(TOKEN));
        const shard = Number(new URL(request.url).pathname.split("/")[2]);
        requests.push(`${i} ${shard}`);
        if (!shards.has(shard)) return decline(request, TOKEN, systemClock, shard);
        // Simulates a lookup in the server.
        await pause(systemClock, 5);
        const handled = { node: i, client, bytes: (await request.bytes()).length };
        return Response.json(handled, { headers: { connection: "close" } });
      },
    });
    const forwarder = new Forwarder({
      hostname: "127.0.0.1",
      port: 0,
      clock: systemClock,
      max_connections: 100,
      isOurs: () => true,
      token: TOKEN,
      shards: {
        here: () => toAddress(server.port),
        has: (shard) => shards.has(shard),
        incarnationAt: () => 1,
        shardOf: shardOf && (async (request) => shardOf(new URL(request.url).pathname)),
        addressOf(shard) {
          const owner = ownedShards.findIndex((shards) => shards.has(shard));
          return owner < 0 || owner === i
            ? undefined
            : address.print({ host: "127.0.0.1", port: ports[owner] as number });
        },
      },
      state: () => STATE,
    });
    ports.push(forwarder.port);
    openServers.push({ stop: () => forwarder.end() }, { stop: () => void server.stop(true) });
    return { url: (shard: number) => `http://127.0.0.1:${forwarder.port}/part/${shard}` };
  });
  return { nodes, ownedShards, requests };
};

test("[CL-30] a request to any node is answered by the node with its shard, with its whole body and its client's address", async () => {
  const { nodes, requests } = startNodes([0, 1], [2]);
  for (const node of nodes)
    for (const [shard, expectedNode] of [
      [1, 0],
      [2, 1],
    ] as const) {
      const response = await fetch(node.url(shard), { method: "POST", body: "x".repeat(1000) });
      expect(await response.json()).toEqual({ node: expectedNode, client: "127.0.0.1", bytes: 1000 });
    }
  expect(requests).toEqual(["0 1", "0 2", "1 2", "1 1", "0 1", "1 2"]);
});

test("[CL-30] a long body reaches the node with the shard", async () => {
  const { nodes } = startNodes([0], [2]);
  const response = await fetch(nodes[0]?.url(2) ?? "", { method: "POST", body: new Uint8Array(8 * MEBIBYTE) });
  expect(await response.json()).toMatchObject({ node: 1, bytes: 8 * MEBIBYTE });
});

test("[CL-30] a slow body reaches the node with the shard, and so does one that the client sends after 100 Continue", async () => {
  const { nodes } = startNodes([0], [2]);
  const url = nodes[0]?.url(2) ?? "";
  let remainingBytes = 2 * MEBIBYTE;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await pause(systemClock, 8);
      controller.enqueue(new Uint8Array(16 * 1024));
      remainingBytes -= 16 * 1024;
      if (remainingBytes === 0) controller.close();
    },
  });
  const slow = await fetch(url, { method: "POST", body });
  expect(await slow.json()).toMatchObject({ node: 1, bytes: 2 * MEBIBYTE });
  using waiting = new RawConnection(new URL(url));
  waiting.send(`POST /part/2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
  expect(await waiting.until((text) => text.includes("\r\n\r\n"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
  waiting.send("later");
  expect(await waiting.until((text) => text.includes('"bytes":5'))).toMatch(
    /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /,
  );
});

test("[CL-31] a request for a moving shard waits until a node has it", async () => {
  const { nodes, ownedShards, requests } = startNodes([0], []);
  const response = fetch(nodes[0]?.url(7) ?? "", { method: "POST", body: "x" });
  await until(() => requests.length > 0, { what: "the first node to be called" });
  ownedShards[1]?.add(7);
  expect(await (await response).json()).toMatchObject({ node: 1 });
});

test("[CL-31] two nodes that each consider the other the owner do not forward a request in a loop", async () => {
  const { nodes, ownedShards, requests } = startNodes([0], [7]);
  const waiting = fetch(nodes[0]?.url(7) ?? "", { method: "POST", body: "x" });
  expect(await (await waiting).json()).toMatchObject({ node: 1 });
  ownedShards[1]?.delete(7);
  requests.length = 0;
  const pendingResponse = fetch(nodes[0]?.url(7) ?? "", { method: "POST", body: "x" });
  await until(() => requests.length > 0, { what: "the first node to be called" });
  ownedShards[0]?.add(7);
  expect(await (await pendingResponse).json()).toMatchObject({ node: 0 });
  expect(requests.every((request) => request.startsWith("0 "))).toBe(true);
});

test("[CL-30] a node forwards a request directly to the owner that its head names; after a wrong guess, the owner still answers", async () => {
  const lookUpShard = (path: string): number | undefined => {
    const shard = Number(path.split("/")[2]);
    if (shard === 4) throw new Error("the database does not answer");
    // Does not know shard 5 and mistakes 6 for 0.
    return shard === 5 ? undefined : shard === 6 ? 0 : shard;
  };
  const { nodes, requests } = startNodesWithLookup(lookUpShard, [0, 1], [2, 4, 5, 6]);
  const requestShard = async (shard: number): Promise<unknown> => {
    requests.length = 0;
    const response = await fetch(nodes[0]?.url(shard) ?? "", { method: "POST", body: "x".repeat(1000) });
    return [((await response.json()) as { node: number }).node, ...requests];
  };
  expect(await requestShard(1)).toEqual([0, "0 1"]);
  expect(await requestShard(2)).toEqual([1, "1 2"]);
  for (const shard of [4, 5, 6]) expect(await requestShard(shard)).toEqual([1, `0 ${shard}`, `1 ${shard}`]);
});

test("[CL-63] a client's node header without the token is dropped, and a client that half-closes gets its answer", async () => {
  const { nodes, requests } = startNodes([0], [2]);
  for (const shard of [0, 2]) {
    const url = new URL(nodes[0]?.url(shard) ?? "");
    using forging = new RawConnection(url);
    forging.send(`GET ${url.pathname} HTTP/1.1\r\nHost: x\r\n${NODE_HEADER}: forged 1.2.3.4\r\n\r\n`);
    forging.socket.end();
    const response = await forging.until((text) => text.includes("}"));
    expect(response).toStartWith("HTTP/1.1 200 ");
    expect(response).toContain('"client":"127.0.0.1"');
  }
  expect(requests.length).toBe(3);
});
