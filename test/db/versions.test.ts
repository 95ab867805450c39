// What tells readers that an answer they keep is still right: versions that rise with writes of what the answer was made from.
import { expect, test } from "bun:test";
import { openLocalStore } from "#db/engine/local.ts";
import type { Statement } from "#db/engine/sql.ts";
import { changeSetting, putSetting, putUser, userNamed } from "./batches.ts";
import { temporaryDirectory } from "./deployments.ts";

const nobody = (table: string): Statement => ({ sql: `update ${table} set id = id where id = ?`, rows: [["nobody"]] });

test("[ST-23] a version rises before a write is acknowledged, and only for those who show what was written", async () => {
  using place = temporaryDirectory();
  const store = openLocalStore({ directory: place.path, cacheMb: 16, now: 0, fatal: () => {} });
  const seen = () => [store.shownVersion, store.callersVersion, store.versionOf("one"), store.versionOf("other")];
  /** How much each has risen with a write: what lists show, who callers are, one workspace, another one. */
  const risen = async (batch: readonly Statement[], about?: string): Promise<number[]> => {
    const before = seen();
    await store.commit(batch, about).catch(() => {});
    return seen().map((version, i) => version - (before[i] ?? 0));
  };
  expect(await risen([nobody("agents")])).toEqual([1, 0, 1, 1]);
  expect(await risen([nobody("agents"), nobody("agent_logs")], "one")).toEqual([1, 0, 1, 0]);
  expect(await risen([nobody("agents"), nobody("workspaces")], "one")).toEqual([1, 0, 1, 1]);
  expect(await risen([nobody("agent_logs")], "one")).toEqual([0, 0, 0, 0]);
  expect(await risen([nobody("api_keys")])).toEqual([0, 1, 0, 0]);
  expect(await risen([putUser(userNamed("jo"))])).toEqual([1, 1, 1, 1]);
  expect(await risen([{ sql: "with x as (select 1) delete from users where id = ?", rows: [["nobody"]] }])).toEqual([
    1, 1, 1, 1,
  ]);
  // Refused, or of an unknown fate: somebody may have seen it.
  expect(
    await risen([putSetting({ key: "a", value: "1" }), { ...changeSetting("b", { value: "2" }), expect: 1 }]),
  ).toEqual([1, 0, 1, 1]);
  await store.close();
});
