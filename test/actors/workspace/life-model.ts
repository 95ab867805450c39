// The rules for workspaces with any actions and any clock, as a second, minimal implementation without the product's code; life-commands.ts
// compares it with state.ts and with a running server.

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** How starts of a template version end. */
export type Version = "good" | "bad" | "hang";
export type Transition = "start" | "stop" | "delete";

/** The template's settings in milliseconds; 0 means never. */
export type Rules = { readonly failure_ttl: number; readonly til_dormant: number; readonly autodelete: number };

/** One action. `of` selects a workspace: the n-th created one, modulo their number. */
export type Step = { readonly workspaceIndex: number } & (
  | { readonly do: "create"; readonly version: Version; readonly ttl: number | null; readonly hour: number | null }
  | { readonly do: "claim"; readonly ttl: number | null; readonly hour: number | null }
  | { readonly do: "build"; readonly transition: Transition; readonly version: Version }
  | { readonly do: "cancel" | "use" }
  | { readonly do: "extend"; readonly by: number }
  | { readonly do: "ttl"; readonly ms: number | null }
  | { readonly do: "autostart"; readonly hour: number | null }
  | { readonly do: "dormant" | "favorite"; readonly on: boolean }
  | { readonly do: "wait"; readonly ms: number }
);

/** The visible state of a workspace; times in milliseconds since 1970. */
export type View = {
  readonly status: string;
  /** Oldest first: number, transition, reason, and job status. */
  readonly builds: readonly string[];
  readonly deadline: number | null;
  readonly dormant_at: number | null;
  readonly deleting_at: number | null;
  readonly next_start_at: number | null;
  readonly ttl: number | null;
  readonly favorite: boolean;
};

type Job = "running" | "succeeded" | "failed" | "canceled";
type ModelBuild = { readonly transition: Transition; readonly reason: string; job: Job; ended: number };

/** Returns the next time at this hour in UTC. */
const findNextHour = (hour: number, now: number): number => {
  const today = Math.floor(now / DAY) * DAY + hour * HOUR;
  return today > now ? today : today + DAY;
};

export class LifeModel {
  readonly rules: Rules;
  now: number;
  readonly workspaces: Life[] = [];

  constructor(rules: Rules, now: number) {
    this.rules = rules;
    this.now = now;
  }

  get isBuilding(): boolean {
    return this.workspaces.some((workspace) => workspace.isActive);
  }

  /** Applies a step and returns the status for everyone who does it. */
  applyStep(step: Step): number {
    const answer = this.#answer(step);
    for (const workspace of this.workspaces) workspace.settle(this);
    return answer;
  }

  listViews(): View[] {
    return this.workspaces.map((workspace) => workspace.view(this));
  }

  #answer(step: Step): number {
    if (step.do === "wait") this.now += step.ms;
    if (step.do === "create") this.workspaces.push(new Life(this, step.version, step.ttl, step.hour));
    if (step.do === "claim") this.workspaces.push(new Life(this, "good", step.ttl, step.hour, true));
    if (step.do === "wait" || step.do === "create" || step.do === "claim") return 200;
    return this.workspaces[step.workspaceIndex % this.workspaces.length]?.applyStep(step, this) ?? 0;
  }
}

class Life {
  readonly #builds: ModelBuild[] = [];
  #version: Version;
  #ttl: number | null;
  #hour: number | null;
  #next: number | null = null;
  #deadline: number | null = null;
  #dormant: number | null = null;
  #used: number;
  #favorite = false;

  constructor(model: LifeModel, version: Version, ttl: number | null, hour: number | null, claimed = false) {
    this.#version = version;
    this.#used = model.now;
    [this.#ttl, this.#hour] = [null, null];
    if (claimed) this.#begin("start", "initiator", model.now);
    [this.#ttl, this.#hour] = [ttl, hour];
    this.#begin("start", "initiator", model.now);
  }

  get #last(): ModelBuild {
    return this.#builds.at(-1) as ModelBuild;
  }

  get isActive(): boolean {
    return this.#last.job === "running";
  }

  get #isDeleted(): boolean {
    return this.#last.transition === "delete" && this.#last.job === "succeeded";
  }

  /** Only starts can fail; a hanging build continues until it is canceled. */
  #begin(transition: Transition, reason: string, now: number): void {
    if (transition === "start" && this.#dormant !== null) this.#wake(now);
    const startResults = { good: "succeeded", bad: "failed", hang: "running" } as const;
    const job = transition === "start" ? startResults[this.#version] : "succeeded";
    this.#builds.push({ transition, reason, job, ended: now });
    this.#deadline = null;
    this.#schedule(now);
    if (transition !== "start" || job !== "succeeded" || this.#ttl === null) return;
    const next = this.#hour === null ? null : findNextHour(this.#hour, now);
    // If the next autostart is earlier than the deadline, the workspace keeps running through it.
    this.#deadline = next !== null && now + this.#ttl > next ? next + this.#ttl : now + this.#ttl;
  }

  #wake(now: number): void {
    this.#dormant = null;
    this.#used = now;
  }

  #schedule(now: number): void {
    this.#next = this.#hour === null ? null : findNextHour(this.#hour, now);
  }

  applyStep(step: Step, { now }: LifeModel): number {
    const last = this.#last;
    if (step.do === "cancel") {
      if (!this.isActive) return 400;
      last.job = "canceled";
      last.ended = now;
      return 200;
    }
    if (this.#isDeleted) return step.do === "build" ? 409 : 410;
    if (step.do === "build") {
      if (this.isActive) return 409;
      if (step.transition === "start") this.#version = step.version;
      this.#begin(step.transition, "initiator", now);
    }
    if (step.do === "extend") {
      if (last.transition !== "start" || last.job !== "succeeded" || this.#deadline === null) return 409;
      if (step.by < 29 * 60_000) return 400;
      this.#deadline = now + step.by;
    }
    if (step.do === "ttl") {
      this.#ttl = step.ms;
      if (step.ms === null && last.job === "succeeded") this.#deadline = null;
    }
    if (step.do === "autostart" && step.hour !== this.#hour) {
      this.#hour = step.hour;
      this.#schedule(now);
    }
    if (step.do === "favorite") this.#favorite = step.on;
    if (step.do === "use") this.#used = now;
    if (step.do === "dormant" && step.on !== (this.#dormant !== null)) {
      if (step.on) this.#sleep("dormancy", now);
      else {
        this.#wake(now);
        this.#schedule(now);
      }
    }
    return 200;
  }

  #sleep(reason: string, now: number): void {
    this.#dormant = now;
    if (this.#last.transition === "start" && !this.isActive) this.#begin("stop", reason, now);
  }

  /** Applies the server's automatic actions until none is due. */
  settle(model: LifeModel): void {
    while (!this.#isDeleted && !this.isActive && this.#act(model));
    // An autostart that was due during another action, and is not possible now, is skipped.
    if (this.#next !== null && this.#next <= model.now && !this.isActive) this.#schedule(model.now);
  }

  #act({ now, rules }: LifeModel): boolean {
    const last = this.#last;
    const isDormant = this.#dormant !== null;
    const isFailed = last.transition === "start" && last.job === "failed";
    if (!isDormant && this.#deadline !== null && this.#deadline <= now) this.#begin("stop", "autostop", now);
    else if (!isDormant && this.#next !== null && this.#next <= now && last.transition === "stop")
      this.#begin("start", "autostart", now);
    else if (isFailed && rules.failure_ttl > 0 && last.ended + rules.failure_ttl <= now)
      this.#begin("stop", "autostop", now);
    else if (isDormant && last.transition === "start") this.#begin("stop", "dormancy", now);
    else if (!isDormant && rules.til_dormant > 0 && this.#used + rules.til_dormant <= now) this.#sleep("dormancy", now);
    else if (this.#dormant !== null && rules.autodelete > 0 && this.#dormant + rules.autodelete <= now)
      this.#begin("delete", "autodelete", now);
    else return false;
    return true;
  }

  view({ rules }: LifeModel): View {
    const { transition, job } = this.#last;
    const succeeded = { start: "running", stop: "stopped", delete: "deleted" }[transition];
    const isDeleted = this.#isDeleted;
    const isDormant = this.#dormant !== null;
    return {
      status: job === "succeeded" ? succeeded : job === "running" ? "starting" : job,
      builds: this.#builds.map((build, i) => `${i + 1} ${build.transition} ${build.reason} ${build.job}`),
      deadline: this.#deadline,
      dormant_at: this.#dormant,
      deleting_at:
        this.#dormant !== null && rules.autodelete > 0 && !isDeleted ? this.#dormant + rules.autodelete : null,
      next_start_at: isDeleted || isDormant ? null : this.#next,
      ttl: this.#ttl,
      favorite: this.#favorite,
    };
  }
}
