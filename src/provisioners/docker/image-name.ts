// Restricts the images that a template or repository may name. All workspaces share the engine, and it accepts an image ID, or the
// beginning of one, as a name: with that, a template could start any image, including those built from other people's repositories.
import { ProvisionError } from "../provisioner.ts";

/** The name of all repository images; the tag is the configuration's key. */
export const REPOSITORY_IMAGE = "slipway-repository";
const ID = /^(?:sha256:)?[0-9a-f]+$/i;
const HUB = /^(?:(?:index\.)?docker\.io\/)?(?:library\/)?/i;

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

const VARIABLE = /\$(?:(\w+)|\{(\w+)(?:(:[-+])([^}]*))?\})/g;

/**
 * Throws ProvisionError for a Dockerfile that builds on such an image or copies from one. `args` are the values of its ARGs. Rejects
 * constructs that cannot be resolved reliably: stage names inside a here-document, and variables in `--from`.
 */
export const checkDockerfile = (text: string, args: Readonly<Record<string, string>>, registry?: string): void => {
  const values = new Map<string, string>();
  const stages = new Set<string>();
  let count = 0;
  for (const { line, isQuoted } of readInstructions(text)) {
    const [, word = "", rest = ""] = /^(?:ONBUILD\s+)?(\w+)\s*(.*)$/is.exec(line) ?? [];
    const instruction = word.toUpperCase();
    const [, flags = "", operands = ""] = /^((?:--\S+\s+)*)(.*)$/s.exec(rest) ?? [];
    if (instruction === "ARG" && count === 0) {
      for (const [, name = "", given = ""] of operands.matchAll(/(\w+)(?:=("[^"]*"|'[^']*'|\S*))?/g))
        values.set(name, args[name] ?? expand(unquote(given), values));
    }
    if (instruction === "FROM") {
      const [image = "", as = "", name = ""] = operands.trim().split(/\s+/);
      const wanted = expand(unquote(image), values);
      if (!stages.has(wanted.toLowerCase())) checkImageName(wanted, registry);
      if (as.toUpperCase() === "AS" && !isQuoted) stages.add(name.toLowerCase());
      count += 1;
    }
    if (!["COPY", "ADD", "RUN"].includes(instruction)) continue;
    for (const [, from = ""] of flags.matchAll(/\bfrom=([^\s,]+)/gi)) {
      const wanted = unquote(from);
      if (wanted.includes("$"))
        throw new ProvisionError(`The Dockerfile has a variable in --from=${from}. Write the name.`);
      const isStage = stages.has(wanted.toLowerCase()) || (/^\d+$/.test(wanted) && Number(wanted) < count);
      if (!isStage) checkImageName(wanted, registry);
    }
  }
};

/** Joins continued lines to instructions. `isQuoted`: the line may be inside a here-document. */
const readInstructions = (text: string): { line: string; isQuoted: boolean }[] => {
  const continuation = /^[ \t]*#[ \t]*escape[ \t]*=[ \t]*`/im.test(text) ? "`" : "\\\\";
  const plain = text.replace(/^[ \t]*#.*(?:\r?\n|$)/gm, "").replace(/^[ \t]*\r?\n/gm, "");
  let end: string | undefined;
  return plain
    .replace(new RegExp(`${continuation}[ \\t]*\\r?\\n`, "g"), " ")
    .split(/\r?\n/)
    .map((raw) => {
      const line = raw.trim();
      const isQuoted = end !== undefined;
      if (isQuoted && line === end) end = undefined;
      else end ??= /<<-?["']?(\w+)/.exec(line)?.[1];
      return { line, isQuoted };
    });
};

const unquote = (text: string): string => text.replace(/^(["'])(.*)\1$/s, "$2");

const TOO_LONG = "The Dockerfile has an ARG or a FROM that is too long to be looked at.";
/** Maximum length of a name before and after variables are expanded, because each variable can double the previous one. */
const MAX_EXPANDED = 4_096;

const expand = (text: string, values: ReadonlyMap<string, string>): string => {
  if (text.length > MAX_EXPANDED) throw new ProvisionError(TOO_LONG);
  const expanded = text.replace(VARIABLE, (_, bare = "", braced = "", form = "", other = "") => {
    const value = values.get(bare || braced) ?? "";
    if (form === ":+") return value === "" ? "" : other;
    return value === "" ? other : value;
  });
  if (expanded.length > MAX_EXPANDED) throw new ProvisionError(TOO_LONG);
  if (expanded.includes("$"))
    throw new ProvisionError(`The image ${text} of the Dockerfile has a variable in a form that cannot be followed.`);
  return expanded;
};
