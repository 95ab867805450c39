// Restricts the images that a template or repository may name. All workspaces share the engine, which accepts an image ID, or the beginning
// of an ID, as a name. With an ID, a template could start any image, including images built from other people's repositories.
import { tryParseJson } from "#base/json/read.ts";
import { ProvisionError } from "../provisioner.ts";
import { type Base, BLANKS, listBases, pinBases, type Stage } from "./bases.ts";
import { type Instruction, readDockerfile } from "./dockerfile.ts";
import { type Platform, parsePlatform } from "./platform.ts";

/** The name of all repository images; the tag is the configuration's key. */
export const REPOSITORY_IMAGE = "slipway-repository";
const IMAGE_ID = /^(?:sha256:)?[0-9a-f]+$/i;
const HUB_PREFIX = /^(?:(?:(?:index\.)?docker\.io|localhost)\/)?(?:library\/)?/i;

/** Throws ProvisionError for a name that could be an image ID, and for a repository image, including one in `registry`. */
export const checkImageName = (image: string, registry?: string): void => {
  if (IMAGE_ID.test(image)) {
    throw new ProvisionError(
      `"${image}" could be the ID of an image. Name the image with its tag, such as ${image}:latest.`,
    );
  }
  const shortName = image.replace(HUB_PREFIX, "");
  const registryNames = registry === undefined ? [] : [registry.replace(HUB_PREFIX, "").toLowerCase()];
  const isRepositoryImage = [REPOSITORY_IMAGE, ...registryNames].some(
    (name) => shortName === name || [":", "@"].some((mark) => shortName.toLowerCase().startsWith(name + mark)),
  );
  if (isRepositoryImage) throw new ProvisionError("Images that were built from repositories cannot be used by name.");
};

const VARIABLE = /\$(?:([a-z_]\w*)|\{([a-z_]\w*)(?:(:[-+])([^}$]*))?\})/gi;
/** Characters of image names, and of variables in them. Quotes and escapes could hide an ID. */
const READABLE = /^[\w.:/@+${}-]*$/;

/**
 * Throws ProvisionError for a Dockerfile that builds on or copies from a forbidden image, or that makes the engine download from an
 * address. Also rejects text that cannot be resolved reliably, such as variables in `--from`. `args`: the values of the Dockerfile's ARGs.
 * Returns the images on which the build of `target` is based and from which it copies. The default target is the last stage.
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
 * Returns a checked Dockerfile with the names of base images replaced by image IDs. `ids`: image IDs by `toBaseKey`. Throws ProvisionError
 * if a name cannot be replaced reliably.
 */
export const pinDockerfile = (
  text: string,
  args: Readonly<Record<string, string>>,
  ids: ReadonlyMap<string, string>,
): string => pinBases(text, readStages(text, args), ids);

const readStages = (text: string, args: Readonly<Record<string, string>>, registry?: string): Stage[][] =>
  readDockerfile(text).map((instructions) => {
    const check = new DockerfileCheck(args, registry);
    for (const instruction of instructions) check.read(instruction);
    return check.stages;
  });

const SERVER_LABELS = "slipway.";

const isServerLabel = (name: string): boolean => name.toLowerCase().startsWith(SERVER_LABELS);

/** Throws ProvisionError for an image with labels that only the server may set, because every container of the image would have them. */
export const checkImageLabels = (image: string, labels: Readonly<Record<string, string>>): void => {
  const found = Object.keys(labels).find(isServerLabel);
  if (found === undefined) return;
  throw new ProvisionError(
    `The image ${image} has the label ${found.slice(0, 200)}. Labels that begin with ${SERVER_LABELS} are set by the server. Use another image.`,
  );
};

const MAX_TRIGGERS = 100;
const MAX_TRIGGERS_CHARS = 64 * 1024;

/**
 * Throws ProvisionError for an image with ONBUILD instructions that a Dockerfile may not contain, because they run in every build on the
 * image. The engine reads each instruction as a Dockerfile, which may contain any text. Returns the images from which the instructions
 * copy.
 */
export const checkTriggers = (image: string, triggers: readonly string[], registry?: string): string[] => {
  if (triggers.length > MAX_TRIGGERS || triggers.reduce((sum, { length }) => sum + length, 0) > MAX_TRIGGERS_CHARS) {
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
    for (const instruction of instructions) check.read(instruction);
    return check.copied;
  });

/** Checks the instructions of a Dockerfile, and collects its stages. */
class DockerfileCheck {
  readonly stages: Stage[] = [];
  /** The images from which the current stage copies. */
  copied: string[] = [];
  readonly #args: Readonly<Record<string, string>>;
  readonly #registry: string | undefined;
  /** The subject of an error message. */
  readonly #subject: string;
  /** Values of the ARGs above the first FROM. */
  readonly #values = new Map<string, string>();
  readonly #stageNames = new Set<string>();

  constructor(args: Readonly<Record<string, string>>, registry: string | undefined, subject = "The Dockerfile") {
    this.#args = args;
    this.#registry = registry;
    this.#subject = subject;
  }

  read(instruction: Instruction): void {
    const { word, operands } = instruction;
    if (word === "ARG" && this.stages.length === 0) this.#readArg(instruction);
    if (word === "FROM") this.#readFrom(instruction);
    if (["COPY", "ADD", "RUN"].includes(word)) this.#checkFlags(instruction);
    if (word === "ADD") checkSources(operands, this.#subject);
    if (word === "LABEL") checkLabels(operands, this.#subject);
  }

  #readArg({ operands }: Instruction): void {
    const isUnreadable = /[\\`]/.test(operands);
    for (const [, name = "", defaultValue = ""] of operands.matchAll(/(\w+)(?:=("[^"]*"|'[^']*'|\S*))?/g)) {
      const argument = Object.hasOwn(this.#args, name) ? this.#args[name] : undefined;
      const plainDefault = unquote(defaultValue);
      const value = argument ?? (READABLE.test(plainDefault) ? expand(plainDefault, this.#values) : defaultValue);
      // An image name with an unreadable value is then unreadable too.
      this.#values.set(name, isUnreadable || /^'.*\$/.test(defaultValue) ? UNREADABLE : value);
    }
  }

  #readFrom(from: Instruction): void {
    const { flags, operands } = from;
    const words = operands.trim().split(BLANKS);
    const [written = "", keyword = "", name = ""] = words;
    if (!READABLE.test(unquote(written))) throw createUnreadableError(written);
    const image = expand(unquote(written), this.#values);
    if (!READABLE.test(image)) throw createUnreadableError(written);
    const isStage = this.#stageNames.has(image.toLowerCase());
    if (!isStage) checkImageName(image, this.#registry);
    // The engine converts some letters of other alphabets to ASCII letters, so that it could build another stage than the checked one.
    if (keyword !== "" && !/^[\w.-]*$/.test(name))
      throw new ProvisionError(
        `The Dockerfile has the stage name "${name.slice(0, 80)}". Use letters, digits, dots, hyphens and underscores.`,
      );
    // The engine refuses a FROM in any other form.
    const isComplete = words.length === 1 || (words.length === 3 && /^a[s\u017f]$/i.test(keyword));
    const isBase = !isStage && image !== "scratch" && isComplete;
    const base = isBase ? { image, platform: this.#readPlatform(flags) } : undefined;
    this.copied = [];
    this.stages.push({ name: isComplete ? name.toLowerCase() : "", written, base, copied: this.copied, from });
    if (keyword.toUpperCase() === "AS") this.#stageNames.add(name.toLowerCase());
  }

  #readPlatform(flags: readonly string[]): Platform | undefined {
    const [, written] = /^--platform=(.*)$/s.exec(flags.findLast((flag) => flag.startsWith("--platform=")) ?? "") ?? [];
    if (written === undefined) return undefined;
    if (!READABLE.test(written)) throw createUnreadableError(`--platform=${written}`);
    const platform = expand(written, this.#values);
    if (!READABLE.test(platform)) throw createUnreadableError(`--platform=${written}`);
    return parsePlatform(platform);
  }

  #checkFlags({ word, flags }: Instruction): void {
    for (const flag of flags) {
      const shown = `${word} ${flag.slice(0, 200)}`;
      if (/["'\\]/.test(flag))
        throw new ProvisionError(`${this.#subject} has quotes inside of ${shown}. Write it without.`);
      if (/^--network=(?!default$|none$)/i.test(flag))
        throw new ProvisionError(`${this.#subject} has ${shown}. The steps of a build have a network of their own.`);
      for (const [, from = ""] of flag.matchAll(/\bfrom=([^,]*)/gi)) this.#checkFrom(from);
    }
  }

  #checkFrom(source: string): void {
    if (source.includes("$"))
      throw new ProvisionError(`${this.#subject} has a variable in --from=${source.slice(0, 200)}. Write the name.`);
    const isStage =
      this.#stageNames.has(source.toLowerCase()) || (/^\d+$/.test(source) && Number(source) < this.stages.length);
    if (isStage || source === "") return;
    checkImageName(source, this.#registry);
    this.copied.push(source);
  }
}

const UNREADABLE = "'";
const ADVICE = `Write its name, or variables as $NAME or \${NAME:-default}.`;
const createUnreadableError = (image: string): ProvisionError =>
  new ProvisionError(
    `The image ${image.slice(0, 200)} of the Dockerfile has a variable, quotes or escapes in a form that cannot be followed. ${ADVICE}`,
  );

/** Throws ProvisionError for an ADD that could download, because the engine can reach private networks of its machine. */
const checkSources = (operands: string, subject: string): void => {
  const sources = listOperands(operands).slice(0, -1);
  const forbidden = sources.find(
    (source) => ADDRESS.test(source) || (/[$"'\\`]/.test(source) && !PATH_WITH_VARIABLE.test(source)),
  );
  if (forbidden === undefined) return;
  const prefix = `${subject} has ADD ${forbidden.slice(0, 200)}`;
  throw new ProvisionError(
    ADDRESS.test(forbidden)
      ? `${prefix}, which the engine would download in its machine's network. Download in a RUN instruction.`
      : `${prefix}, which could be an address. Use COPY, which downloads nothing.`,
  );
};

const ADDRESS = /:\/\/|^https?:|^git@/i;
/** A path that begins with a folder, which cannot be an address. */
const PATH_WITH_VARIABLE = /^[^$:"'\\`/]*\/[^"'\\`]*$/;

/**
 * Throws ProvisionError for a LABEL that could be one of the server's labels, because the server finds the containers and volumes of a
 * workspace by these labels.
 */
const checkLabels = (operands: string, subject: string): void => {
  // Both escape characters are possible: a Dockerfile can set the backquote in its first line, but this does not affect its ONBUILD
  // instructions.
  for (const key of ["\\", "`"].flatMap((escapeCharacter) => listLabelKeys(operands, escapeCharacter))) {
    const prefix = `${subject} has LABEL ${key.slice(0, 200)}`;
    if (key.includes("$")) throw new ProvisionError(`${prefix}, whose name has a variable. Write the name.`);
    if (isServerLabel(key.replace(/["'\\`]/g, "")))
      throw new ProvisionError(
        `${prefix}. Labels that begin with ${SERVER_LABELS} are set by the server. Choose another name.`,
      );
  }
};

/** Returns the keys of a LABEL with their quotes and escapes, as moby's parser separates them. */
const listLabelKeys = (operands: string, escapeCharacter: string): string[] => {
  const words: string[] = [];
  let word = "";
  let quote = "";
  for (let index = 0; index < operands.length; index++) {
    const character = operands[index] as string;
    if (quote === "" && /\s/.test(character)) {
      if (word !== "") words.push(word);
      word = "";
      continue;
    }
    if (character === quote) quote = "";
    else if (quote === "" && (character === '"' || character === "'")) quote = character;
    word += character;
    // The character after an escape character belongs to the word, even if it is a blank or a quote.
    if (character === escapeCharacter && quote !== "'") word += operands[++index] ?? "";
  }
  if (word !== "") words.push(word);
  // The old form `LABEL key value` sets one label.
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
const MAX_EXPANDED_CHARS = 4_096;

const expand = (text: string, values: ReadonlyMap<string, string>): string => {
  if (text.length > MAX_EXPANDED_CHARS) throw new ProvisionError(TOO_LONG_MESSAGE);
  const expanded = text.replace(VARIABLE, (_, bare = "", braced = "", operator = "", alternative = "") => {
    const value = values.get(bare || braced) ?? "";
    if (operator === ":+") return value === "" ? "" : alternative;
    return value === "" ? alternative : value;
  });
  if (expanded.length > MAX_EXPANDED_CHARS) throw new ProvisionError(TOO_LONG_MESSAGE);
  if (expanded.includes("$"))
    throw new ProvisionError(
      `The image ${text.slice(0, 200)} of the Dockerfile has a variable in a form that cannot be followed. ${ADVICE}`,
    );
  return expanded;
};
