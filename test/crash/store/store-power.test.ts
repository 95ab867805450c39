// The short version of the store's power-loss test; `bun run torture` runs the long one.
import { describe, expect, test } from "bun:test";
import { randomFrom } from "#test/support/random.ts";
import {
  checkAfterPowerLoss,
  findEarlyAcknowledgements,
  listCrashPoints,
  powerSkipReason,
  runTraced,
  storePowerLoss,
} from "./store-power.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const reason = powerSkipReason();
if (reason) process.stderr.write(`skipped, power loss of the store: ${reason}\n`);

describe.skipIf(reason !== "")("when the power fails", () => {
  test(`[ST-6] eight possible disk states after a power loss can be opened and contain every acknowledged write (seed ${SEED})`, async () => {
    expect(await storePowerLoss({ rounds: 8, seed: SEED, log: () => {} })).toContain("none lost");
  });

  test("[ST-6] no batch is acknowledged before the log is flushed, and the check would detect one", async () => {
    const events = await runTraced(10);
    expect(listCrashPoints(events).length).toBeGreaterThan(20);
    expect(findEarlyAcknowledgements(events)).toEqual([]);

    // The same run, as if on a disk that does not flush the log.
    const unflushed = events.filter(({ kind, file }) => !(kind === "sync" && file === "slipway.db-wal"));
    expect(findEarlyAcknowledgements(unflushed).length).toBeGreaterThan(0);
    const lastPoint = Math.max(
      ...listCrashPoints(events).filter((point) => events.some(({ kind, from }) => kind === "say" && from === point)),
    );
    expect(checkAfterPowerLoss(events, lastPoint, "nothing", randomFrom(SEED)).problems).toEqual([]);
    expect(checkAfterPowerLoss(unflushed, lastPoint, "nothing", randomFrom(SEED)).problems.join()).toContain("LOST");
  });
});
