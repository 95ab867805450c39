// How a container reaches the server: directly, through a relay on its gateway, or not at all. How the relay rewrites a request.
import { expect, test } from "bun:test";
import { readFrames } from "#src/daemon/containers/exec.ts";
import { findRoute, rewriteHead } from "#src/daemon/containers/relay.ts";

const NETWORKS = { NetworkSettings: { Networks: { bridge: { Gateway: "172.17.0.1", IPAddress: "172.17.0.2" } } } };

test("[CO-16] only a local server needs a relay, unless the container uses the host's network", () => {
  const routeTo = (url: string, container: Parameters<typeof findRoute>[1] = NETWORKS) =>
    findRoute(new URL(url), container);
  expect(routeTo("https://slipway.example.com")).toEqual({ kind: "direct" });
  expect(routeTo("http://127.0.0.1:3000")).toEqual({ kind: "relay", gateway: "172.17.0.1", address: "172.17.0.2" });
  expect(routeTo("http://[::1]:3000")).toMatchObject({ kind: "relay" });
  expect(routeTo("http://localhost:3000", { HostConfig: { NetworkMode: "host" } })).toEqual({ kind: "direct" });
  expect(() => routeTo("https://localhost:3000")).toThrow(/cannot reach the server/);
  expect(() => routeTo("http://localhost:3000", { NetworkSettings: { Networks: {} } })).toThrow(/no network/);
});

test("[CO-16] a relayed request has the server's host name and closes its connection unless it is an upgrade", () => {
  expect(rewriteHead("localhost:3000", "GET / HTTP/1.1\r\nhost: 172.17.0.1:9\r\nConnection: keep-alive\r\nA: b")).toBe(
    "GET / HTTP/1.1\r\nHost: localhost:3000\r\nA: b\r\nConnection: close",
  );
  expect(rewriteHead("s", "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket")).toBe(
    "GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket",
  );
});

test("[CO-13] assembles a program's output from the engine's frames, even if the last one is truncated", () => {
  const frame = (text: string, length = text.length) =>
    Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, length]), Buffer.from(text)]);
  expect(readFrames(Buffer.concat([frame("one "), frame("two"), frame("cu", 9)]))).toBe("one twocu");
});
