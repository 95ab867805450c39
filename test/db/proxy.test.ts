// A store in another process, with a network that loses, duplicates or rejects many requests.
import { afterEach, describe, expect, test } from "bun:test";
import { insertSetting, listSettings } from "./batches.ts";
import { awaitOutcome, type Deployment } from "./contract.ts";
import { proxyDeployment } from "./deployments.ts";
import type { ProxyStore } from "./proxy-store.ts";

describe("a store behind a network", () => {
  let deployment: Deployment;
  afterEach(() => deployment.remove());
  const openWith = async (faults: Parameters<typeof proxyDeployment>[1]) => {
    deployment = await proxyDeployment(7, faults);
    return (await deployment.open()) as ProxyStore;
  };
  const putKey = (store: ProxyStore, key: string) => awaitOutcome(store.commit([insertSetting({ key, value: "" })]));

  test("[ST-22] after a lost response, the request is repeated with the same ID, and the batch is applied once", async () => {
    const store = await openWith({ lost: 0.5, twice: 0.5 });
    const keys = Array.from({ length: 30 }, (_, i) => `k${10 + i}`);
    expect(await Promise.all(keys.map((key) => putKey(store, key)))).toEqual(keys.map(() => "done"));
    expect((await store.all(listSettings())).map((row) => row.key)).toEqual(keys);
    expect(store.faultCounts.lost).toBeGreaterThan(0);
    expect(store.faultCounts.twice).toBeGreaterThan(0);
  });

  test("[ST-22] without any response the outcome is unknown, although the batch was written", async () => {
    const store = await openWith({ lost: 1 });
    expect(await putKey(store, "a")).toBe("unknown");
    expect((await store.all(listSettings())).map((row) => row.key)).toEqual(["a"]);
  });

  test("[ST-22] if every attempt was rejected, certainly nothing was written", async () => {
    const store = await openWith({ refused: 1 });
    expect(await putKey(store, "a")).toBe("overloaded");
    expect(await store.all(listSettings())).toEqual([]);
  });

  test("[ST-22] when the other process dies, batches in flight are unknown", async () => {
    const store = await openWith({});
    expect(await putKey(store, "a")).toBe("done");
    await deployment.crash();
    expect(await putKey(store, "b")).toBe("unknown");
  });
});
