// Random steps for workspaces and how they are applied: to the model of life-model.ts and to a real implementation at the same time, which
// must return and show the same after each step. A failure prints the seed and path to reproduce it.
import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import { LifeModel, type Rules, type Step, type View } from "./life-model.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** While a build is running, time advances in small steps: a hanging one sends only heartbeats. */
const MAX_STEP_MS = 59_000;
/** More workspaces add no coverage. */
const MAX_WORKSPACES = 3;

/** A real implementation of workspaces. */
export interface Real {
  /** Applies a step and returns its status, with 2xx as 200, when all its effects are complete. */
  applyStep(step: Step): Promise<number>;
  listViews(): Promise<View[]>;
}

/** Waits until shortly before a full hour, so that a scheduled start coincides with work in progress. */
type BeforeHourStep = { readonly do: "eve"; readonly hour: number };

class Command implements fc.AsyncCommand<LifeModel, Real> {
  readonly #requested: Step | BeforeHourStep;

  constructor(request: Step | BeforeHourStep) {
    this.#requested = request;
  }

  #step({ now }: Readonly<LifeModel>): Step {
    const request = this.#requested;
    if (request.do !== "eve") return request;
    // Today's, or tomorrow's if today's has passed.
    const eve = Math.floor(now / DAY) * DAY + request.hour * HOUR - 20_000;
    return { do: "wait", workspaceIndex: 0, ms: eve > now ? eve - now : eve + DAY - now };
  }

  check(model: Readonly<LifeModel>): boolean {
    const step = this.#step(model);
    if (step.do === "create" || step.do === "claim") return model.workspaces.length < MAX_WORKSPACES;
    if (step.do === "wait") return step.ms <= MAX_STEP_MS || !model.isBuilding;
    return model.workspaces.length > 0;
  }

  async run(model: LifeModel, real: Real): Promise<void> {
    const step = this.#step(model);
    const expected = model.applyStep(step);
    deepStrictEqual(await real.applyStep(step), expected, `${this} returned another status`);
    deepStrictEqual(await real.listViews(), model.listViews());
  }

  toString(): string {
    return JSON.stringify(this.#requested);
  }
}

const workspaceIndex = fc.nat({ max: MAX_WORKSPACES - 1 });
const version = fc.constantFrom("good", "good", "bad", "hang" as const);
const transition = fc.constantFrom("start", "start", "stop", "stop", "stop", "delete" as const);
const ttl = fc.option(fc.constantFrom(HOUR, 5 * HOUR, 30 * HOUR));
const HOURS = [0, 9] as const;
const hour = fc.option(fc.constantFrom(...HOURS));
const isOn = fc.boolean();
const times = fc.constantFrom(30_000, MAX_STEP_MS, 20 * MINUTE, HOUR, 5 * HOUR, 9 * HOUR, DAY, 3 * DAY);

const listStepArbitraries = (): fc.Arbitrary<Step | BeforeHourStep>[] => [
  fc.record({ do: fc.constant("create" as const), workspaceIndex, version, ttl, hour }),
  fc.record({ do: fc.constant("claim" as const), workspaceIndex, ttl, hour }),
  fc.record({ do: fc.constant("build" as const), workspaceIndex, transition, version }),
  fc.record({ do: fc.constant("build" as const), workspaceIndex, transition, version }),
  fc.record({ do: fc.constantFrom("cancel" as const, "use" as const), workspaceIndex }),
  fc.record({ do: fc.constant("cancel" as const), workspaceIndex }),
  fc.record({ do: fc.constant("extend" as const), workspaceIndex, by: fc.constantFrom(5 * MINUTE, HOUR, 2 * DAY) }),
  fc.record({ do: fc.constant("ttl" as const), workspaceIndex, ms: ttl }),
  fc.record({ do: fc.constant("autostart" as const), workspaceIndex, hour }),
  fc.record({ do: fc.constantFrom("dormant" as const, "favorite" as const), workspaceIndex, on: isOn }),
  fc.record({ do: fc.constant("wait" as const), workspaceIndex, ms: times }),
  fc.record({ do: fc.constant("eve" as const), hour: fc.constantFrom(...HOURS) }),
];

/** Template settings. */
export const TEMPLATES: readonly Rules[] = [
  { failure_ttl: 0, til_dormant: 0, autodelete: 0 },
  { failure_ttl: HOUR, til_dormant: 2 * DAY, autodelete: DAY },
];

export type PlayOptions = {
  readonly seed: number;
  readonly runs: number;
  /** Steps per run. */
  readonly steps: number;
  /** Creates an empty instance and its time; `done` cleans up. */
  open(rules: Rules): Promise<{ now: number; real: Real; done?(): Promise<void> }>;
};

/** Plays that many runs. Returns how often each build reason occurred, to detect runs in which nothing happens. */
export const play = async ({ seed, runs, steps, open }: PlayOptions): Promise<Record<string, number>> => {
  const reasonCounts: Record<string, number> = {};
  const commands = fc.commands(
    listStepArbitraries().map((arbitrary) => arbitrary.map((step) => new Command(step))),
    { maxCommands: steps, size: "max" },
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...TEMPLATES), commands, async (rules, commandSequence) => {
      const { now, real, done } = await open(rules);
      const model = new LifeModel(rules, now);
      try {
        await fc.asyncModelRun(() => ({ model, real }), commandSequence);
      } finally {
        await done?.();
      }
      for (const build of model.listViews().flatMap(({ builds }) => builds)) {
        const [, , reason = ""] = build.split(" ");
        reasonCounts[reason] = (reasonCounts[reason] ?? 0) + 1;
      }
    }),
    { seed, numRuns: runs, endOnFailure: false },
  );
  return reasonCounts;
};
