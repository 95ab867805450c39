// The number of prebuilt workspaces: single cases, and a template with random events and a random clock against the rules after every step.
// A failure prints the seed to reproduce it.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  MAX_CONCURRENT,
  MAX_FAILURES,
  MAX_PREBUILDS,
  type Prebuild,
  pauseAfter,
  planSteps,
  type Steps,
  type WantedPrebuilds,
} from "#actors/prebuilds/steps.ts";

const [START, MINUTE, HOUR] = [1_900_000_000_000, 60_000, 3_600_000];
const createWanted = (instances: number, ttl_ms = 0): WantedPrebuilds => ({
  version_id: "v1",
  presets: [{ id: "p", instances, ttl_ms }],
});
const createPrebuild = (id: string, overrides: Partial<Prebuild> = {}): Prebuild => ({
  workspace_id: id,
  build_id: `${id}-1`,
  version_id: "v1",
  preset_id: "p",
  transition: "start",
  status: "succeeded",
  ended_at: START,
  ...overrides,
});
const summarizeSteps = ({ create, remove, next }: Steps) => [
  create.length,
  remove.map((r) => r.workspace_id).join(),
  next,
];
const createFailed = (id: string, ended_at: number) => createPrebuild(id, { status: "failed", ended_at });

describe("single cases", () => {
  // biome-ignore format: a table of cases
  const cases: [string, WantedPrebuilds, Prebuild[], number, [number, string, number | undefined]][] = [
    ["[PB-1] creates missing prebuilds", createWanted(3), [createPrebuild("a")], START, [2, "", undefined]],
    ["[PB-1] counts a prebuild that is being built", createWanted(2), [createPrebuild("a", { status: "running", ended_at: null })], START, [1, "", undefined]],
    ["[PB-1] removes surplus prebuilds, the longest ready first", createWanted(1), [createPrebuild("b", { ended_at: START + 1 }), createPrebuild("a")], START + 2, [0, "a", undefined]],
    ["[PB-1] does not remove a prebuild that is being built", createWanted(0), [createPrebuild("a", { status: "pending", ended_at: null })], START, [0, "", undefined]],
    ["[PB-2] replaces a prebuild of another version", createWanted(1), [createPrebuild("a", { version_id: "v0" })], START, [1, "a", undefined]],
    ["[PB-2] removes the prebuild of a deleted preset", createWanted(1), [createPrebuild("a", { preset_id: "q" }), createPrebuild("b")], START, [0, "a", undefined]],
    ["[PB-2] replaces a prebuild that a person has stopped", createWanted(1), [createPrebuild("a", { transition: "stop" })], START, [1, "a", undefined]],
    ["[PB-3] replaces an expired prebuild", createWanted(1, HOUR), [createPrebuild("a")], START + HOUR, [1, "a", undefined]],
    ["[PB-3] checks a prebuild again when it expires", createWanted(1, HOUR), [createPrebuild("a")], START + 1, [0, "", START + HOUR]],
    ["[PB-4] waits after a failure", createWanted(2), [createFailed("a", START)], START + 1, [0, "", START + MINUTE]],
    ["[PB-4] tries one build after the wait", createWanted(2), [createFailed("a", START)], START + MINUTE, [1, "", undefined]],
    ["[PB-4] tries only one build at a time", createWanted(2), [createFailed("a", START), createPrebuild("b", { status: "running", ended_at: null })], START + HOUR, [0, "", undefined]],
    ["[PB-4] gives up after the third failure", createWanted(2), [createFailed("a", START), createFailed("b", START), createFailed("c", START)], START + 9 * HOUR, [0, "", undefined]],
    ["[PB-4] resets the failure count after a success", createWanted(2), [createFailed("a", START), createPrebuild("b", { ended_at: START + 1 })], START + 2, [1, "a", undefined]],
    ["[PB-5] does not retry a failed delete immediately", createWanted(0), [createPrebuild("a", { transition: "delete", status: "failed" })], START, [0, "", START + 10 * MINUTE]],
    ["[PB-5] retries a failed delete later", createWanted(0), [createPrebuild("a", { transition: "delete", status: "failed" })], START + HOUR, [0, "a", undefined]],
    ["[PB-6] builds only a few prebuilds concurrently", createWanted(50), [], START, [MAX_CONCURRENT, "", undefined]],
  ];
  test.each(cases)("%s", (_, wanted, existing, now, steps) => {
    expect(summarizeSteps(planSteps(wanted, existing, now))).toEqual(steps);
  });

  test("[PB-4] [PB-17] a preset whose builds are given up is reported", () => {
    const listGivenUp = (...existing: Prebuild[]) => planSteps(createWanted(1), existing, START + 9 * HOUR).given_up;
    expect(listGivenUp(createFailed("a", START), createFailed("b", START))).toEqual([]);
    expect(listGivenUp(createFailed("a", START), createFailed("b", START), createFailed("c", START))).toEqual(["p"]);
  });

  test("[PB-6] a template keeps at most the limit, even if its presets request more", () => {
    const presets = ["p", "q"].map((id) => ({ id, instances: 100, ttl_ms: 0 }));
    const existing = Array.from({ length: MAX_PREBUILDS - 2 }, (_, i) => createPrebuild(`w${i}`));
    expect(planSteps({ version_id: "v1", presets }, existing, START).create.length).toBe(2);
  });
});

type Move = { kind: "end" | "fail" | "claim" | "version" | "instances" | "leap" | "stop" | "look"; number: number };

/** A template and its environment. */
class Model {
  wanted: WantedPrebuilds = {
    version_id: "v0",
    presets: [
      { id: "p", instances: 2, ttl_ms: 0 },
      { id: "q", instances: 3, ttl_ms: 2 * HOUR },
    ],
  };
  prebuilds: Prebuild[] = [];
  now = START;
  #createdCount = 0;

  active = (): Prebuild[] => this.prebuilds.filter(({ ended_at }) => ended_at === null);

  apply({ kind, number: amount }: Move): void {
    const building = this.active()[amount % Math.max(1, this.active().length)];
    const [p, q] = this.wanted.presets as [WantedPrebuilds["presets"][number], WantedPrebuilds["presets"][number]];
    if (kind === "end" && building) this.end(building, "succeeded");
    if (kind === "fail" && building) this.end(building, "failed");
    if (kind === "leap") this.now += amount * MINUTE;
    if (kind === "version") this.wanted = { ...this.wanted, version_id: `v${amount % 3}` };
    if (kind === "instances") this.wanted = { ...this.wanted, presets: [{ ...p, instances: amount % 8 }, q] };
    const ready = this.prebuilds.filter(
      (candidate) => candidate.transition === "start" && candidate.status === "succeeded",
    );
    const prebuild = ready[amount % Math.max(1, ready.length)];
    if (kind === "claim" && prebuild) this.prebuilds = this.prebuilds.filter((candidate) => candidate !== prebuild);
    if (kind === "stop" && prebuild) this.replace(prebuild, { transition: "stop" });
    this.runKeeper();
  }

  end(prebuild: Prebuild, status: "succeeded" | "failed"): void {
    if (prebuild.transition === "delete" && status === "succeeded")
      this.prebuilds = this.prebuilds.filter((x) => x !== prebuild);
    else this.replace(prebuild, { status, ended_at: this.now });
  }

  replace(prebuild: Prebuild, overrides: Partial<Prebuild>): void {
    this.prebuilds = this.prebuilds.map((candidate) =>
      candidate === prebuild ? { ...candidate, ...overrides } : candidate,
    );
  }

  /** Runs the keeper and checks the invariants. */
  runKeeper(): void {
    const before = this.prebuilds;
    const { create, remove, next } = planSteps(this.wanted, before, this.now);
    expect(remove.every(({ ended_at }) => ended_at !== null)).toBe(true);
    expect(new Set(remove).size).toBe(remove.length);
    if (next !== undefined) expect(next).toBeGreaterThan(this.now);
    for (const removed of remove) this.replace(removed, { transition: "delete", status: "pending", ended_at: null });
    for (const preset_id of create) {
      this.#createdCount += 1;
      const { version_id } = this.wanted;
      this.prebuilds = [
        ...this.prebuilds,
        createPrebuild(`w${this.#createdCount}`, { version_id, preset_id, status: "pending", ended_at: null }),
      ];
    }
    if (create.length > 0) {
      const starting = this.active().filter(({ transition }) => transition === "start");
      expect(starting.length).toBeLessThanOrEqual(MAX_CONCURRENT);
    }
    for (const { id, instances, ttl_ms } of this.wanted.presets) {
      const current = this.prebuilds.filter(
        (candidate) => candidate.preset_id === id && candidate.version_id === this.wanted.version_id,
      );
      const starts = current.filter(({ transition }) => transition === "start");
      const counted = starts.filter(({ status }) => status !== "failed");
      if (create.includes(id)) expect(counted.length).toBeLessThanOrEqual(instances);
      for (const { status, ended_at } of starts) {
        if (ttl_ms > 0 && status === "succeeded") expect((ended_at ?? 0) + ttl_ms).toBeGreaterThan(this.now);
      }
    }
    // Another check finds nothing to do.
    const repeated = planSteps(this.wanted, this.prebuilds, this.now);
    expect([repeated.create, repeated.remove]).toEqual([[], []]);
  }

  /** Ends the random changes: all further builds succeed. Checks that the configured number is reached. */
  settle(): void {
    this.wanted = { ...this.wanted, version_id: "v9" };
    this.now += 24 * HOUR;
    for (let round = 0; round < 100; round++) {
      this.runKeeper();
      for (const building of this.active()) this.end(building, "succeeded");
    }
    this.runKeeper();
    for (const { id, instances } of this.wanted.presets) {
      expect(this.prebuilds.filter(({ preset_id }) => preset_id === id).length).toBe(instances);
    }
    expect(this.active()).toEqual([]);
  }
}

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(`[PB-1] [PB-2] [PB-3] [PB-6] each reconciliation of a randomly changed template follows the rules and reaches the configured number in the end (seed ${SEED})`, () => {
  const kind = fc.constantFrom<Move["kind"]>(
    "end",
    "end",
    "fail",
    "claim",
    "version",
    "instances",
    "leap",
    "stop",
    "look",
  );
  const moves = fc.array(fc.record({ kind, number: fc.nat(240) }), { maxLength: 60 });
  fc.assert(
    fc.property(moves, (list) => {
      const model = new Model();
      for (const move of list) model.apply(move);
      model.settle();
    }),
    { seed: SEED, numRuns: 60 },
  );
});

test("[PB-4] the delays grow, and a version that cannot be built is built at most a handful of times", () => {
  expect([1, 2].map(pauseAfter)).toEqual([MINUTE, 2 * MINUTE]);
  const model = new Model();
  let buildCount = 0;
  for (let minute = 0; minute < 600; minute++) {
    model.runKeeper();
    for (const building of model.active()) {
      buildCount += 1;
      model.end(building, "failed");
    }
    model.now += MINUTE;
  }
  expect(buildCount).toBeLessThanOrEqual(2 * (MAX_FAILURES + MAX_CONCURRENT));
});
