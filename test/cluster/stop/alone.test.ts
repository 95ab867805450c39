// A single node that is stopping reports that to new clients until running requests are answered.
import { expect } from "bun:test";
import { call, formatHead, readAnswer } from "#test/api/edge/raw-http.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

const HALF = `${formatHead("POST", "/api/v2/users/login", { "Content-Type": "application/json", "Content-Length": 12 })}{"email"`;

for (const active of ["one", "every"]) {
  testNeeding(
    [needs.postgres],
    `[CL-24] [HT-19] a single node answers 503 while it stops, and completes requests in progress (SLIPWAY_CLUSTER_ACTIVE=${active})`,
    async () => {
      await using cluster = await startCluster();
      const node = await cluster.start(1, { env: { SLIPWAY_CLUSTER_ACTIVE: active } });
      const fetchStatus = async (path: string) => (await call(node.url, formatHead("GET", path)))?.status;
      using pendingRequest = new RawConnection(node.url);
      pendingRequest.send(HALF);
      await until(async () => (await fetchStatus("/readyz")) === 200);

      node.signal("SIGTERM");
      await until(async () => (await fetchStatus("/readyz")) === 503);
      const refused = await call(node.url, formatHead("GET", "/api/v2/buildinfo"));
      expect([refused?.status, refused?.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await fetchStatus("/healthz")).toBe(200);

      pendingRequest.send(":1}\r\n");
      expect((await readAnswer(pendingRequest))?.status).toBe(400);
      expect(await node.exited).toBe(0);
    },
  );
}
