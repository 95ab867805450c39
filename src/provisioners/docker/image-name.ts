// Restricts the images that a template or repository may name. All workspaces share the engine, and it accepts an image ID, or the
// beginning of one, as a name: with that, a template could start any image, including those built from other people's repositories.
import { tryParseJson } from "#base/json/read.ts";
import { ProvisionError } from "../provisioner.ts";
import { type Base, BLANKS, listBases, pinBases, type Stage } from "./bases.ts";
import { type Instruction, readDockerfile } from "./dockerfile.ts";
import { type Platform, parsePlatform } from "./platform.ts";

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

const VARIABLE = /\$(?:([a-z_]\w*)|\{([a-z_]\w*)(?:(:[-+])([^}$]*))?\})/gi;
/** Characters of image names, and of variables in them. Quotes and escapes could hide an ID. */
const READABLE = /^[\w.:/@+${}-]*$/;

/**
 * Throws ProvisionError for a Dockerfile that builds on such an image, copies from one, or lets the engine download something from where only
 * its machine can. `args` are the values of its ARGs. Rejects what cannot be resolved reliably, such as variables in `--from`. Returns the
 * images that the build of `target`, by default the last stage, starts or copies from.
 */
export const checkDockerfile = (
  text: string,
  args: Readonly<Record<string, string>>,
  registry?: string,
  target?: string,
): Base[] => {
  const readings = readStages(text, args, registry);
  if (readings.every(({ length }) => length === 0)) throw new ProvisionError("The Dockerfile has no FROM.");
  return listBases(readings, target);
};

/**
 * Returns a checked Dockerfile in which the bases are named by the IDs of images: `ids` has them by `toBaseKey`. Throws ProvisionError if that
 * cannot be written reliably.
 */
export const pinDockerfile = (
  text: string,
  args: Readonly<Record<string, string>>,
  ids: ReadonlyMap<string, string>,
): string => pinBases(text, readStages(text, args), ids);

const readStages = (text: string, args: Readonly<Record<string, string>>, registry?: string): Stage[][] =>
  readDockerfile(text).map((instructions) => {
    const check = new DockerfileCheck(args, registry);
    for (const one of instructions) check.take(one);
    return check.stages;
  });

const SERVER_LABELS = "slipway.";

const isServerLabel = (name: string): boolean => name.toLowerCase().startsWith(SERVER_LABELS);

/** Throws ProvisionError for an image with labels of the server, which every container of the image would have. */
export const checkImageLabels = (image: string, labels: Readonly<Record<string, string>>): void => {
  const found = Object.keys(labels).find(isServerLabel);
  if (found === undefined) return;
  throw new ProvisionError(
    `The image ${image} has the label ${found.slice(0, 200)}. Labels that begin with ${SERVER_LABELS} are set by the server. Use another image.`,
  );
};

const MAX_TRIGGERS = 100;
const MAX_TRIGGERS_LENGTH = 64 * 1024;

/**
 * Throws ProvisionError for an image whose ONBUILD instructions, which run in every build on it, do what a Dockerfile may not. The engine
 * reads each as a Dockerfile of one instruction, and an image can have any text there. Returns the images from which they copy.
 */
export const checkTriggers = (image: string, triggers: readonly string[], registry?: string): string[] => {
  if (triggers.length > MAX_TRIGGERS || triggers.reduce((sum, { length }) => sum + length, 0) > MAX_TRIGGERS_LENGTH) {
    throw new ProvisionError(
      `The image ${image} has more than ${MAX_TRIGGERS} ONBUILD instructions, or more than 64 KiB of them. Build on another image.`,
    );
  }
  return triggers.flatMap((text) => {
    try {
      return checkTrigger(text, registry);
    } catch (error) {
      if (!(error instanceof ProvisionError)) throw error;
      const shown = text.slice(0, 200).replace(/\s+/g, " ");
      throw new ProvisionError(`The image ${image} has the instruction "ONBUILD ${shown}". ${error.message}`);
    }
  });
};

const checkTrigger = (text: string, registry: string | undefined): readonly string[] =>
  readDockerfile(text, "It").flatMap((instructions) => {
    if (instructions.length > 1) throw new ProvisionError("It has several instructions. Build on another image.");
    const check = new DockerfileCheck({}, registry, "It");
    for (const one of instructions) check.take(one);
    return check.copied;
  });

/** One reading of a Dockerfile. */
class DockerfileCheck {
  readonly stages: Stage[] = [];
  /** The images from which the current stage copies. */
  copied: string[] = [];
  readonly #args: Readonly<Record<string, string>>;
  readonly #registry: string | undefined;
  /** The beginning of an error's sentence. */
  readonly #subject: string;
  readonly #values = new Map<string, string>();
  readonly #names = new Set<string>();

  constructor(args: Readonly<Record<string, string>>, registry: string | undefined, subject = "The Dockerfile") {
    this.#args = args;
    this.#registry = registry;
    this.#subject = subject;
  }

  take(one: Instruction): void {
    if (one.word === "ARG" && this.stages.length === 0) this.#takeArg(one);
    if (one.word === "FROM") this.#takeFrom(one);
    if (["COPY", "ADD", "RUN"].includes(one.word)) this.#takeFlags(one);
    if (one.word === "ADD") checkSources(one.operands, this.#subject);
    if (one.word === "LABEL") checkLabels(one.operands, this.#subject);
  }

  #takeArg({ operands }: Instruction): void {
    const isOdd = /[\\`]/.test(operands);
    for (const [, name = "", given = ""] of operands.matchAll(/(\w+)(?:=("[^"]*"|'[^']*'|\S*))?/g)) {
      // A value that is not readable makes the image that uses it unreadable.
      const own = Object.hasOwn(this.#args, name) ? this.#args[name] : undefined;
      const value = own ?? (READABLE.test(unquote(given)) ? expand(unquote(given), this.#values) : given);
      this.#values.set(name, isOdd || /^'.*\$/.test(given) ? UNREADABLE : value);
    }
  }

  #takeFrom(from: Instruction): void {
    const { flags, operands } = from;
    const words = operands.trim().split(BLANKS);
    const [written = "", as = "", name = ""] = words;
    if (!READABLE.test(unquote(written))) throw unreadable(written);
    const image = expand(unquote(written), this.#values);
    if (!READABLE.test(image)) throw unreadable(written);
    const isStage = this.#names.has(image.toLowerCase());
    if (!isStage) checkImageName(image, this.#registry);
    // The engine folds letters of other alphabets to these: it could build another stage of the same name than the one that is checked.
    if (as !== "" && !/^[\w.-]*$/.test(name))
      throw new ProvisionError(
        `The Dockerfile has the stage name "${name.slice(0, 80)}". Use letters, digits, dots, hyphens and underscores.`,
      );
    // The engine refuses any other line.
    const isComplete = words.length === 1 || (words.length === 3 && /^a[s\u017f]$/i.test(as));
    const isBase = !isStage && image !== "scratch" && isComplete;
    const base = isBase ? { image, platform: this.#readPlatform(flags) } : undefined;
    this.copied = [];
    this.stages.push({ name: isComplete ? name.toLowerCase() : "", written, base, copied: this.copied, from });
    if (as.toUpperCase() === "AS") this.#names.add(name.toLowerCase());
  }

  #readPlatform(flags: readonly string[]): Platform | undefined {
    const [, written] = /^--platform=(.*)$/s.exec(flags.findLast((flag) => flag.startsWith("--platform=")) ?? "") ?? [];
    if (written === undefined) return undefined;
    if (!READABLE.test(written)) throw unreadable(`--platform=${written}`);
    const platform = expand(written, this.#values);
    if (!READABLE.test(platform)) throw unreadable(`--platform=${written}`);
    return parsePlatform(platform);
  }

  #takeFlags({ word, flags }: Instruction): void {
    for (const flag of flags) {
      const shown = `${word} ${flag.slice(0, 200)}`;
      if (/["'\\]/.test(flag))
        throw new ProvisionError(`${this.#subject} has quotes inside of ${shown}. Write it without.`);
      if (/^--network=(?!default$|none$)/i.test(flag))
        throw new ProvisionError(`${this.#subject} has ${shown}. The steps of a build have a network of their own.`);
      for (const [, from = ""] of flag.matchAll(/\bfrom=([^,]*)/gi)) this.#checkFrom(from);
    }
  }

  #checkFrom(wanted: string): void {
    if (wanted.includes("$"))
      throw new ProvisionError(`${this.#subject} has a variable in --from=${wanted.slice(0, 200)}. Write the name.`);
    const isStage =
      this.#names.has(wanted.toLowerCase()) || (/^\d+$/.test(wanted) && Number(wanted) < this.stages.length);
    if (isStage || wanted === "") return;
    checkImageName(wanted, this.#registry);
    this.copied.push(wanted);
  }
}

const UNREADABLE = "'";
const ADVICE = `Write its name, or variables as $NAME or \${NAME:-default}.`;
const unreadable = (image: string): ProvisionError =>
  new ProvisionError(
    `The image ${image.slice(0, 200)} of the Dockerfile has a variable, quotes or escapes in a form that cannot be followed. ${ADVICE}`,
  );

/** Throws ProvisionError for an ADD that could download: the engine would reach the networks of its machine. */
const checkSources = (operands: string, subject: string): void => {
  const sources = listOperands(operands).slice(0, -1);
  const odd = sources.find((one) => ADDRESS.test(one) || (/[$"'\\`]/.test(one) && !PATH_WITH_VARIABLE.test(one)));
  if (odd === undefined) return;
  const what = `${subject} has ADD ${odd.slice(0, 200)}`;
  throw new ProvisionError(
    ADDRESS.test(odd)
      ? `${what}, which the engine would download in its machine's network. Download in a RUN instruction.`
      : `${what}, which could be an address. Use COPY, which downloads nothing.`,
  );
};

const ADDRESS = /:\/\/|^https?:|^git@/i;
/** No address begins with a folder. */
const PATH_WITH_VARIABLE = /^[^$:"'\\`]*\/[^"'\\`]*$/;

/** Throws ProvisionError for a LABEL that could be one by which the server finds what belongs to a workspace. */
const checkLabels = (operands: string, subject: string): void => {
  // The first line of a Dockerfile chooses the escape character, and the engine reads an ONBUILD of a stage without it.
  for (const key of ["\\", "`"].flatMap((sign) => listKeys(operands, sign))) {
    const what = `${subject} has LABEL ${key.slice(0, 200)}`;
    if (key.includes("$")) throw new ProvisionError(`${what}, whose name has a variable. Write the name.`);
    if (isServerLabel(key.replace(/["'\\`]/g, "")))
      throw new ProvisionError(
        `${what}. Labels that begin with ${SERVER_LABELS} are set by the server. Choose another name.`,
      );
  }
};

/** Returns the keys of a LABEL with their quotes and escapes, as moby's parser separates them. */
const listKeys = (operands: string, sign: string): string[] => {
  const words: string[] = [];
  let word = "";
  let quote = "";
  for (let at = 0; at < operands.length; at++) {
    const one = operands[at] as string;
    if (quote === "" && /\s/.test(one)) {
      if (word !== "") words.push(word);
      word = "";
      continue;
    }
    if (one === quote) quote = "";
    else if (quote === "" && (one === '"' || one === "'")) quote = one;
    word += one;
    // The next character is always a part of the word.
    if (one === sign && quote !== "'") word += operands[++at] ?? "";
  }
  if (word !== "") words.push(word);
  // The old form has one label: its key, a blank, and its value.
  if (!words[0]?.includes("=")) return operands.trim().split(BLANKS).slice(0, 1);
  return words.map((one) => one.split("=", 1)[0] as string);
};

const listOperands = (operands: string): string[] => {
  const list = tryParseJson(operands.trim());
  if (Array.isArray(list) && list.every((one) => typeof one === "string")) return list;
  return operands.trim().split(BLANKS);
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
    throw new ProvisionError(
      `The image ${text.slice(0, 200)} of the Dockerfile has a variable in a form that cannot be followed. ${ADVICE}`,
    );
  return expanded;
};
