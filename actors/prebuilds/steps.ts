// Computes the steps that give a template's presets the requested number of ready workspaces: how many to create, which to delete, and when
// to check again. Pure; used by keeper.ts (rules PB-1 to PB-6).
import type { JobStatus } from "#schema/workspaces/job.ts";

/** The presets that request prebuilds. Empty for a template from which no workspace can be created. */
export type WantedPrebuilds = {
  readonly version_id: string;
  readonly presets: readonly { readonly id: string; readonly instances: number; readonly ttl_ms: number }[];
};

/** An unclaimed workspace with its latest build. Times in milliseconds since 1970. */
export type Prebuild = {
  readonly workspace_id: string;
  readonly build_id: string;
  readonly version_id: string;
  readonly preset_id: string | null;
  readonly transition: "start" | "stop" | "delete";
  readonly status: JobStatus;
  readonly ended_at: number | null;
};

export type Steps = {
  /** The preset of each workspace to create. */
  readonly create: readonly string[];
  readonly remove: readonly Prebuild[];
  /** When the next step becomes due without an event; undefined if unknown. */
  readonly next: number | undefined;
  /** Presets that are given up after too many consecutive failures. */
  readonly given_up: readonly string[];
};

/** Maximum concurrent builds of a template, which limits the cost of a version that cannot be built. */
export const MAX_CONCURRENT = 5;
/** Maximum prebuilds of a template, whatever its presets request. */
export const MAX_PREBUILDS = 100;
/** After this many consecutive failures, the preset is given up until the template has another active version. */
export const MAX_FAILURES = 3;
const RETRY_MS = 60_000;
const DELETE_RETRY_MS = 10 * 60_000;

/** Returns the delay after the newest of `failures`: a minute, doubled with each failure. */
export const pauseAfter = (failures: number): number => RETRY_MS * 2 ** (failures - 1);

/** Returns the steps at `now`. Workspaces being built are left alone until their build has ended. */
export const planSteps = (wanted: WantedPrebuilds, existing: readonly Prebuild[], now: number): Steps => {
  const remove: Prebuild[] = [];
  const create: string[] = [];
  const nextTimes: number[] = [];
  const kept: Prebuild[] = [];
  const given_up: string[] = [];
  const isWanted = ({ version_id, preset_id }: Prebuild): boolean =>
    version_id === wanted.version_id && wanted.presets.some(({ id }) => id === preset_id);
  for (const one of existing) {
    if (isActive(one)) kept.push(one);
    else if (one.transition === "delete") {
      const retryAt = (one.ended_at ?? now) + DELETE_RETRY_MS;
      if (now >= retryAt) remove.push(one);
      else nextTimes.push(retryAt);
    } else if (one.transition === "stop" || !isWanted(one)) remove.push(one);
    else kept.push(one);
  }
  let freeCount = Math.min(
    MAX_CONCURRENT - kept.filter((one) => isActive(one) && one.transition === "start").length,
    MAX_PREBUILDS - kept.filter(({ transition }) => transition === "start").length,
  );
  for (const preset of wanted.presets) {
    const ofPreset = kept.filter((one) => isWanted(one) && one.preset_id === preset.id && one.transition === "start");
    const steps = toPresetSteps(preset, ofPreset, now);
    remove.push(...steps.remove);
    if (steps.next !== undefined) nextTimes.push(steps.next);
    if (steps.isGivenUp) given_up.push(preset.id);
    const count = Math.max(0, Math.min(steps.missing, freeCount));
    freeCount -= count;
    create.push(...Array<string>(count).fill(preset.id));
  }
  return { create, remove, next: nextTimes.length > 0 ? Math.min(...nextTimes) : undefined, given_up };
};

const isActive = ({ status }: Prebuild): boolean =>
  status === "pending" || status === "running" || status === "canceling";

const toPresetSteps = (
  { instances, ttl_ms }: WantedPrebuilds["presets"][number],
  prebuilds: readonly Prebuild[],
  now: number,
): { missing: number; remove: Prebuild[]; next: number | undefined; isGivenUp?: true } => {
  const toEnd = ({ ended_at }: Prebuild): number => ended_at ?? now;
  const building = prebuilds.filter(isActive);
  const succeeded = prebuilds.filter(({ status }) => status === "succeeded").sort((a, b) => toEnd(a) - toEnd(b));
  const isOld = (one: Prebuild): boolean => ttl_ms > 0 && now >= toEnd(one) + ttl_ms;
  const fresh = succeeded.filter((one) => !isOld(one));
  // A failure counts until a later start succeeds. Its workspace is kept until then, because failures are counted by the stored workspaces.
  const lastSuccessAt = Math.max(Number.NEGATIVE_INFINITY, ...succeeded.map(toEnd));
  const unsuccessful = prebuilds.filter(({ status }) => status === "failed" || status === "canceled");
  const failures = unsuccessful.filter((one) => toEnd(one) > lastSuccessAt);
  const surplus = Math.min(fresh.length, Math.max(0, fresh.length + building.length - instances));
  const remove = [
    ...succeeded.filter(isOld),
    ...fresh.slice(0, surplus),
    ...unsuccessful.filter((one) => !failures.includes(one)),
  ];
  const expiry = ttl_ms > 0 && fresh.length > surplus ? toEnd(fresh[surplus] as Prebuild) + ttl_ms : undefined;
  const missing = Math.max(0, instances - fresh.length - building.length);
  if (failures.length === 0 || missing === 0) return { missing, remove, next: expiry };
  if (failures.length >= MAX_FAILURES) return { missing: 0, remove, next: expiry, isGivenUp: true };
  // Creates one at a time until one succeeds.
  const retryAt = Math.max(...failures.map(toEnd)) + pauseAfter(failures.length);
  if (now >= retryAt) return { missing: building.length > 0 ? 0 : 1, remove, next: expiry };
  return { missing: 0, remove, next: Math.min(retryAt, expiry ?? retryAt) };
};
