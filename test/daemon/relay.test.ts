// How a container reaches the server: directly, through a relay on its gateway, or not at all; and how the relay rewrites a request.
import { expect, test } from "bun:test";
import { readFrames } from "#src/daemon/containers/exec.ts";
import { findRoute, rewriteHead } from "#src/daemon/containers/relay.ts";

const NETWORKS = { NetworkSettings: { Networks: { bridge: { Gateway: "172.17.0.1", IPAddress: "172.17.0.2" } } } };

test("[CO-16] only a server on this machine needs a relay, and not for a container in this machine's own network", () => {
  const route = (url: string, container: Parameters<typeof findRoute>[1] = NETWORKS) =>
    findRoute(new URL(url), container);
  expect(route("https://slipway.example.com")).toEqual({ kind: "direct" });
  expect(route("http://127.0.0.1:3000")).toEqual({ kind: "relay", gateway: "172.17.0.1", address: "172.17.0.2" });
  expect(route("http://[::1]:3000")).toMatchObject({ kind: "relay" });
  expect(route("http://localhost:3000", { HostConfig: { NetworkMode: "host" } })).toEqual({ kind: "direct" });
  expect(() => route("https://localhost:3000")).toThrow(/cannot reach the server/);
  expect(() => route("http://localhost:3000", { NetworkSettings: { Networks: {} } })).toThrow(/no network/);
});

test("[CO-16] a relayed request names the server's own host, and is the only one of its connection unless it changes the protocol", () => {
  expect(rewriteHead("localhost:3000", "GET / HTTP/1.1\r\nhost: 172.17.0.1:9\r\nConnection: keep-alive\r\nA: b")).toBe(
    "GET / HTTP/1.1\r\nHost: localhost:3000\r\nA: b\r\nConnection: close",
  );
  expect(rewriteHead("s", "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket")).toBe(
    "GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket",
  );
});

test("[CO-13] output of a program without a terminal is assembled from the engine's frames, also if the last one is cut", () => {
  const frame = (text: string, length = text.length) =>
    Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, length]), Buffer.from(text)]);
  expect(readFrames(Buffer.concat([frame("one "), frame("two"), frame("cu", 9)]))).toBe("one twocu");
});
