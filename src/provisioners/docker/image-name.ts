// Restricts the images that a template or repository may name. All workspaces share the engine, and it accepts an image ID, or the
// beginning of one, as a name: with that, a template could start any image, including those built from other people's repositories.
import { tryParseJson } from "#base/json/read.ts";
import { ProvisionError } from "../provisioner.ts";
import { type Instruction, readDockerfile, readInstruction } from "./dockerfile.ts";

/** The name of all repository images; the tag is the configuration's key. */
export const REPOSITORY_IMAGE = "slipway-repository";
const ID = /^(?:sha256:)?[0-9a-f]+$/i;
const HUB = /^(?:(?:(?:index\.)?docker\.io|localhost)\/)?(?:library\/)?/i;

/** Throws ProvisionError for an image ID, anything that could be one, and repository images, also those in `registry`. */
export const checkImageName = (image: string, registry?: string): void => {
  if (ID.test(image)) {
    throw new ProvisionError(
      `"${image}" could be the ID of an image. Name the image with its tag, such as ${image}:latest.`,
    );
  }
  const bare = image.replace(HUB, "");
  const own = [REPOSITORY_IMAGE, ...(registry === undefined ? [] : [registry.replace(HUB, "").toLowerCase()])];
  if (own.some((name) => bare === name || [":", "@"].some((end) => bare.toLowerCase().startsWith(name + end)))) {
    throw new ProvisionError("Images that were built from repositories cannot be used by name.");
  }
};

const VARIABLE = /\$(?:([a-z_]\w*)|\{([a-z_]\w*)(?:(:[-+])([^}]*))?\})/gi;
/** Characters of image names, and of variables in them. Quotes and escapes could hide an ID. */
const READABLE = /^[\w.:/@+${}-]*$/;

/**
 * Throws ProvisionError for a Dockerfile that builds on such an image, copies from one, or lets the engine download something from where only
 * its machine can. `args` are the values of its ARGs. Rejects what cannot be resolved reliably, such as stage names inside a here-document,
 * and variables in `--from`. Returns the images that it builds on.
 */
export const checkDockerfile = (text: string, args: Readonly<Record<string, string>>, registry?: string): string[] => {
  const bases = new Set<string>();
  let stages = 0;
  for (const instructions of readDockerfile(text)) {
    const check = new DockerfileCheck(args, registry);
    for (const one of instructions) check.take(one);
    stages = Math.max(stages, check.stages);
    for (const base of check.bases) bases.add(base);
  }
  if (stages === 0) throw new ProvisionError("The Dockerfile has no FROM.");
  return [...bases];
};

/** Throws ProvisionError for an image whose ONBUILD instructions, which run in every build on it, do what a Dockerfile may not. */
export const checkTriggers = (image: string, triggers: readonly string[], registry?: string): void => {
  for (const line of triggers) {
    try {
      new DockerfileCheck({}, registry).take(readInstruction(line));
    } catch (error) {
      if (!(error instanceof ProvisionError)) throw error;
      throw new ProvisionError(
        `The image ${image} has the instruction "ONBUILD ${line.slice(0, 200)}". ${error.message}`,
      );
    }
  }
};

/** One reading of a Dockerfile. */
class DockerfileCheck {
  /** Images that stages are based on. */
  readonly bases: string[] = [];
  stages = 0;
  readonly #args: Readonly<Record<string, string>>;
  readonly #registry: string | undefined;
  readonly #values = new Map<string, string>();
  readonly #names = new Set<string>();

  constructor(args: Readonly<Record<string, string>>, registry: string | undefined) {
    this.#args = args;
    this.#registry = registry;
  }

  take(one: Instruction): void {
    if (one.word === "ARG" && this.stages === 0) this.#takeArg(one);
    if (one.word === "FROM") this.#takeFrom(one);
    if (["COPY", "ADD", "RUN"].includes(one.word)) this.#takeFlags(one);
    if (one.word === "ADD") checkSources(one.operands);
  }

  #takeArg({ operands }: Instruction): void {
    for (const [, name = "", given = ""] of operands.matchAll(/(\w+)(?:=("[^"]*"|'[^']*'|\S*))?/g)) {
      // A value that is not readable makes the image that uses it unreadable.
      const value = this.#args[name] ?? (READABLE.test(unquote(given)) ? expand(unquote(given), this.#values) : given);
      this.#values.set(name, /^'.*\$/.test(given) || /[\\`]/.test(operands) ? UNREADABLE : value);
    }
  }

  #takeFrom({ operands, isQuoted }: Instruction): void {
    const words = operands.trim().split(/[\t\v\f\r ]+/);
    const [image = "", as = "", name = ""] = words;
    if (!READABLE.test(unquote(image))) throw unreadable(image);
    const imageReference = expand(unquote(image), this.#values);
    if (!READABLE.test(imageReference)) throw unreadable(image);
    if (!this.#names.has(imageReference.toLowerCase())) {
      checkImageName(imageReference, this.#registry);
      // Otherwise the engine refuses the line: it may be one of a program in a here-document.
      const isComplete = words.length === 1 || (words.length === 3 && /^a[s\u017f]$/i.test(as));
      if (imageReference !== "scratch" && isComplete) this.bases.push(imageReference);
    }
    if (as.toUpperCase() === "AS" && !isQuoted) this.#names.add(name.toLowerCase());
    this.stages += 1;
  }

  #takeFlags({ word, flags }: Instruction): void {
    for (const flag of flags) {
      if (/["'\\]/.test(flag)) throw new ProvisionError(`The Dockerfile has quotes inside of ${word} ${flag}.`);
      if (/^--network=(?!default$|none$)/i.test(flag))
        throw new ProvisionError(`The Dockerfile has RUN ${flag}. The steps of a build have a network of their own.`);
      for (const [, from = ""] of flag.matchAll(/\bfrom=([^,]*)/gi)) this.#checkFrom(from);
    }
  }

  #checkFrom(wanted: string): void {
    if (wanted.includes("$"))
      throw new ProvisionError(`The Dockerfile has a variable in --from=${wanted}. Write the name.`);
    const isStage = this.#names.has(wanted.toLowerCase()) || (/^\d+$/.test(wanted) && Number(wanted) < this.stages);
    if (!isStage) checkImageName(wanted, this.#registry);
  }
}

const UNREADABLE = "'";
const unreadable = (image: string): ProvisionError =>
  new ProvisionError(
    `The image ${image} of the Dockerfile has a variable, quotes or escapes in a form that cannot be followed.`,
  );

/** Throws ProvisionError for an ADD that could download: the engine would reach the networks of its machine. */
const checkSources = (operands: string): void => {
  const sources = listOperands(operands).slice(0, -1);
  const odd = sources.find((one) => /[$"'\\`]|:\/\/|^https?:|^git@/i.test(one));
  if (odd !== undefined)
    throw new ProvisionError(
      `The Dockerfile has ADD ${odd}. ADD may only take files of the repository, by their plain names. Download in a RUN instruction.`,
    );
};

const listOperands = (operands: string): string[] => {
  const list = tryParseJson(operands.trim());
  if (Array.isArray(list) && list.every((one) => typeof one === "string")) return list;
  return operands.trim().split(/[\t\v\f\r ]+/);
};

const unquote = (text: string): string => text.replace(/^(["'])(.*)\1$/s, "$2");

const TOO_LONG_MESSAGE = "The Dockerfile has an ARG or FROM instruction that is too long.";
/** Maximum length of a name before and after variables are expanded, because each variable can double the previous one. */
const MAX_EXPANDED = 4_096;

const expand = (text: string, values: ReadonlyMap<string, string>): string => {
  if (text.length > MAX_EXPANDED) throw new ProvisionError(TOO_LONG_MESSAGE);
  const expanded = text.replace(VARIABLE, (_, bare = "", braced = "", form = "", other = "") => {
    const value = values.get(bare || braced) ?? "";
    if (form === ":+") return value === "" ? "" : other;
    return value === "" ? other : value;
  });
  if (expanded.length > MAX_EXPANDED) throw new ProvisionError(TOO_LONG_MESSAGE);
  if (expanded.includes("$"))
    throw new ProvisionError(`The image ${text} of the Dockerfile has a variable in a form that cannot be followed.`);
  return expanded;
};
