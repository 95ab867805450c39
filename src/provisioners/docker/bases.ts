// Lists the base images of a Dockerfile's stages, up to the stage that is built, and replaces their names by IDs. Pure.
import { ProvisionError } from "../provisioner.ts";
import type { Instruction } from "./dockerfile.ts";
import type { Platform } from "./platform.ts";

/** An image that a stage is based on. */
export type Base = {
  /** The image's name; empty if the variables in it have no value. */
  readonly image: string;
  /** The platform that the stage names; undefined for the engine's own platform. */
  readonly platform: Platform | undefined;
};

export type Stage = {
  /** In lower case; empty for a stage without a name. */
  readonly name: string;
  /** The image as the Dockerfile writes it. */
  readonly written: string;
  /** Undefined for a stage that is based on another stage or on `scratch`. */
  readonly base: Base | undefined;
  /** The images from which the stage copies. */
  readonly copied: string[];
  readonly from: Instruction;
};

/**
 * Returns the base images of the stages up to `target`, with which an engine ends the build, and the images from which these stages copy.
 * `readings`: the stages, once for each way in which an engine may read the Dockerfile. Throws ProvisionError if no stage is named
 * `target`, or if a base image has no name.
 */
export const listBases = (readings: readonly (readonly Stage[])[], target = ""): Base[] => {
  const needed = readings.map((stages) => (target === "" ? stages : stages.slice(0, findEnd(stages, target))));
  if (needed.every(({ length }) => length === 0)) {
    throw new ProvisionError(`The Dockerfile has no stage "${target}". Name one of its stages as the build's target.`);
  }
  const bases = new Map<string, Base>();
  // In a reading without the target, any stage may be built.
  const stages = readings.flatMap((all, index) => (needed[index]?.length ? needed[index] : all));
  for (const { base, written, copied } of stages) {
    if (base?.image === "") throw new ProvisionError(describeMissingName(written));
    for (const one of [...(base ? [base] : []), ...copied.map((image) => ({ image, platform: undefined }))])
      bases.set(toBaseKey(one), one);
  }
  return [...bases.values()];
};

/** Returns a key that is the same for equal bases. */
export const toBaseKey = ({ image, platform }: Base): string => JSON.stringify([image, platform]);

/**
 * Returns the Dockerfile with the names of base images replaced by image IDs, because a name may refer to another image by the time the
 * engine reads it. `ids`: image IDs by `toBaseKey`. Throws ProvisionError for a FROM that takes several lines, or that engines read in
 * different ways.
 */
export const pinBases = (
  text: string,
  readings: readonly (readonly Stage[])[],
  ids: ReadonlyMap<string, string>,
): string => {
  const lines = text.split("\n");
  const pinned = new Map<number, string>();
  for (const { base, from } of readings.flat()) {
    const id = base && ids.get(toBaseKey(base));
    if (id === undefined) continue;
    const [first, last] = from.lines;
    const [, ...operands] = from.operands.trim().split(BLANKS);
    const line = ["FROM", ...from.flags, id, ...operands].join(" ");
    const isPlain = first === last && from.flags.every((flag) => /^[\w.:/@+${}=-]*$/.test(flag));
    if (!isPlain || (pinned.get(first) ?? line) !== line)
      throw new ProvisionError(
        `The Dockerfile has a FROM in line ${first} that cannot be followed. Write it in one line, without quotes and escapes.`,
      );
    pinned.set(first, line);
    lines[first - 1] = line;
  }
  return lines.join("\n");
};

/** The characters that separate the words of an instruction. */
export const BLANKS = /[\t\v\f\r ]+/;

/** Returns the number of stages up to the last one with this name or number, or 0. */
const findEnd = (stages: readonly Stage[], target: string): number => {
  const end = stages.findLastIndex(({ name }) => name === target.toLowerCase()) + 1;
  if (end > 0 || !/^\d+$/.test(target)) return end;
  return Number(target) < stages.length ? Number(target) + 1 : 0;
};

const describeMissingName = (written: string): string => {
  const [, variable] = /\$\{?(\w+)/.exec(written) ?? [];
  return variable === undefined
    ? "A FROM of the Dockerfile names no image."
    : `The image ${written} of the Dockerfile has no value. Give ARG ${variable} a default above the first FROM.`;
};
