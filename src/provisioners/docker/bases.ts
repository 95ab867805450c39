// Selects the images that a build of a Dockerfile starts from: those of its stages up to the one that is built. Pure.
import { ProvisionError } from "../provisioner.ts";
import type { Platform } from "./platform.ts";

/** An image that a stage is based on. */
export type Base = {
  /** Empty if its variables have no value. */
  readonly image: string;
  /** The platform that the stage asks for; undefined for the engine's own. */
  readonly platform: Platform | undefined;
};

export type Stage = {
  /** In lower case; empty for a stage without a name. */
  readonly name: string;
  /** The image as the Dockerfile writes it. */
  readonly written: string;
  /** Undefined for a stage that is based on another one or on nothing. */
  readonly base: Base | undefined;
};

/**
 * Returns the bases of the stages up to `target`, where an engine ends the build, in each way of reading the Dockerfile. Throws
 * ProvisionError for a target that no stage has, and for a base without a name.
 */
export const listBases = (readings: readonly (readonly Stage[])[], target = ""): Base[] => {
  const needed = readings.map((stages) => (target === "" ? stages : stages.slice(0, findEnd(stages, target))));
  if (needed.every(({ length }) => length === 0)) {
    throw new ProvisionError(`The Dockerfile has no stage "${target}". Name one of its stages as the build's target.`);
  }
  const found = new Map<string, Base>();
  // In a reading without the target, every stage may be built.
  for (const { base, written } of needed.flatMap((stages, at) =>
    stages.length === 0 ? (readings[at] ?? []) : stages,
  )) {
    if (base?.image === "") throw new ProvisionError(describeNameless(written));
    if (base) found.set(JSON.stringify([base.image, base.platform]), base);
  }
  return [...found.values()];
};

/** Returns the number of stages up to the last one with this name or number, or 0. */
const findEnd = (stages: readonly Stage[], target: string): number => {
  const end = stages.findLastIndex(({ name }) => name === target.toLowerCase()) + 1;
  if (end > 0 || !/^\d+$/.test(target)) return end;
  return Number(target) < stages.length ? Number(target) + 1 : 0;
};

const describeNameless = (written: string): string => {
  const [, variable] = /\$\{?(\w+)/.exec(written) ?? [];
  return variable === undefined
    ? "A FROM of the Dockerfile names no image."
    : `The image ${written} of the Dockerfile has no value. Give ARG ${variable} a default above the first FROM.`;
};
