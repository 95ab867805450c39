// Reads the metadata of development container features (containers.dev), sorts the features for installation, and creates the Dockerfile
// that installs them. Pure.

import { promisify } from "node:util";
import { gunzip, type ZlibOptions } from "node:zlib";
import { quoteForShell } from "#base/text/shell-quote.ts";
import { readTar } from "../archive-tar.ts";
import { createConfiguration, isMapping, toList, toText, toVariables, type Values } from "./configuration.ts";

const MAX_METADATA_BYTES = 256 * 1024;
/** Maximum bytes of a decompressed archive. A few kilobytes can decompress to gigabytes. */
const MAX_FEATURE_TAR_BYTES = 64 * 1024 * 1024;

/** A feature's devcontainer-feature.json. */
export type FeatureMetadata = {
  readonly name: string;
  /** Default values of options. */
  readonly defaults: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** IDs without versions of features that must be installed before this one, if they are requested. */
  readonly after: readonly string[];
  /** Features that this one requires. They are installed before it. */
  readonly needs: readonly WantedFeature[];
  /** Names of settings that are ignored. */
  readonly dropped: readonly string[];
};

export type WantedFeature = { readonly id: string; readonly options: Readonly<Record<string, string>> };

export type Feature = WantedFeature & { readonly metadata: FeatureMetadata };

const gunzipBytes = promisify(gunzip) as (bytes: Uint8Array, options: ZlibOptions) => Promise<Uint8Array>;

/** Returns the metadata in a feature's archive, which may be compressed. Rejects with an Error that describes the problem. */
export const readFeatureArchive = async (id: string, archive: Uint8Array): Promise<FeatureMetadata> => {
  const bytes = archive[0] === 0x1f && archive[1] === 0x8b ? await decompress(id, archive) : archive;
  const entries = await readTar({ size: bytes.length, read: async (at, length) => bytes.subarray(at, at + length) });
  const file = entries.find(({ name }) => name === "devcontainer-feature.json");
  if (!file) throw new Error(`The feature ${id} has no devcontainer-feature.json.`);
  return readFeature(id, new TextDecoder().decode(await file.read(MAX_METADATA_BYTES)));
};

const decompress = (id: string, archive: Uint8Array): Promise<Uint8Array> =>
  gunzipBytes(archive, { maxOutputLength: MAX_FEATURE_TAR_BYTES }).catch((cause) => {
    const isTooLarge = (cause as { code?: string }).code === "ERR_BUFFER_TOO_LARGE";
    const problem = isTooLarge ? `unpacks to more than ${MAX_FEATURE_TAR_BYTES} bytes` : "is damaged";
    throw new Error(`The archive of the feature ${id} ${problem}.`, { cause });
  });

/** Parses a devcontainer-feature.json. Throws an Error that describes the problem. */
export const readFeature = (id: string, text: string): FeatureMetadata => {
  let value: unknown;
  try {
    value = Bun.JSONC.parse(text);
  } catch (error) {
    throw new Error(
      `The feature ${id} has a devcontainer-feature.json that is not valid JSON: ${(error as Error).message}`,
    );
  }
  if (!isMapping(value)) throw new Error(`The feature ${id} has a devcontainer-feature.json that is not an object.`);
  // Notes about the variables are dropped with this configuration.
  const unused = createConfiguration();
  const options = isMapping(value.options) ? Object.entries(value.options) : [];
  const defaults = options.flatMap(([name, definition]) => {
    const given = isMapping(definition) ? definition.default : undefined;
    return OPTION_NAME.test(name) && given !== undefined && typeof given !== "object"
      ? [[name, String(given)] as const]
      : [];
  });
  return {
    name: toText(value.name, 256) ?? id,
    defaults: Object.fromEntries(defaults),
    env: toVariables(unused, "containerEnv", value.containerEnv),
    after: toList(value.installsAfter)
      .flatMap((one) => toText(one, 512) ?? [])
      .map(omitVersion),
    needs: listNeeds(value.dependsOn),
    dropped: DROPPED_PROPERTIES.filter((property) => value[property] !== undefined && value[property] !== false),
  };
};

const OPTION_NAME = /^[A-Za-z_][\w-]*$/;

/** Settings that would give a container more privileges, or that start programs. */
const DROPPED_PROPERTIES = [
  ...["privileged", "capAdd", "securityOpt", "mounts", "entrypoint"],
  ...["onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand", "postAttachCommand"],
];

const listNeeds = (value: unknown): WantedFeature[] =>
  isMapping(value) ? Object.entries(value).map(([id, given]) => ({ id, options: toOptions(given) })) : [];

const toOptions = (given: unknown): Record<string, string> => {
  const shorthand: Values = typeof given === "string" ? { version: given } : {};
  const options = isMapping(given) ? given : shorthand;
  const valid = Object.entries(options).filter(([name, value]) => OPTION_NAME.test(name) && typeof value !== "object");
  return Object.fromEntries(valid.map(([name, value]) => [name, String(value)]));
};

/** Returns the ID without its version, such as `ghcr.io/devcontainers/features/node` for `ghcr.io/devcontainers/features/node:1`. */
export const omitVersion = (id: string): string => id.replace(/(?:@[\w:]+|:[\w.-]+)$/, "");

/** Returns the features in installation order. Throws an Error if features depend on each other in a cycle. */
export const sortByInstallOrder = (features: readonly Feature[]): Feature[] => {
  const remaining = [...features];
  const ordered: Feature[] = [];
  const requestedIds = new Set(features.map(({ id }) => omitVersion(id)));
  const isOrdered = (id: string): boolean => ordered.some((one) => omitVersion(one.id) === id);
  while (remaining.length > 0) {
    const index = remaining.findIndex(({ metadata }) =>
      [...metadata.after, ...metadata.needs.map(({ id }) => omitVersion(id))].every(
        (id) => !requestedIds.has(id) || isOrdered(id),
      ),
    );
    const [next] = index < 0 ? [] : remaining.splice(index, 1);
    if (!next) throw new Error(`These features wait for each other: ${remaining.map(({ id }) => id).join(", ")}.`);
    ordered.push(next);
  }
  return ordered;
};

/** Returns the path of a feature's archive in the build context. `index`: the position of the feature. */
export const toFeatureFile = (index: number): string => `features/${index}.tar`;

/** Returns a Dockerfile that installs features as root. `user`: the container's user. `image_user`: the base image's user. */
export const toDockerfile = (
  base: string,
  features: readonly Feature[],
  { user, image_user }: { readonly user: string; readonly image_user: string },
): string => {
  const lines = features.flatMap((feature, index) => {
    const folder = `/tmp/slipway-features/${index}`;
    const env = Object.entries(feature.metadata.env);
    return [
      `ADD ${toFeatureFile(index)} ${folder}/`,
      `RUN ${JSON.stringify(["/bin/sh", "-c", toInstallSteps(feature, folder, user || "root")])}`,
      // Docker expands ${PATH}.
      ...env.map(([name, value]) => `ENV ${name}=${JSON.stringify(value.replaceAll("\n", " "))}`),
    ];
  });
  return [`FROM ${base}`, "USER root", ...lines, ...(image_user ? [`USER ${image_user}`] : []), ""].join("\n");
};

const toInstallSteps = ({ id, options, metadata }: Feature, folder: string, user: string): string => {
  const allOptions = Object.entries(Object.assign({}, metadata.defaults, options));
  const home = `"$(getent passwd ${quoteForShell(user)} 2>/dev/null | cut -d: -f6 || true)"`;
  const exported = allOptions.map(([name, value]) => `export ${toOptionVariable(name)}=${quoteForShell(value)}`);
  return [
    ...exported,
    `export _REMOTE_USER=${quoteForShell(user)} _CONTAINER_USER=${quoteForShell(user)}`,
    `_REMOTE_USER_HOME=${home}`,
    `[ -n "$_REMOTE_USER_HOME" ] || _REMOTE_USER_HOME=$(sed -n ${quoteForShell(`s#^${user}:[^:]*:[^:]*:[^:]*:[^:]*:\\([^:]*\\):.*#\\1#p`)} /etc/passwd)`,
    "export _REMOTE_USER_HOME _CONTAINER_USER_HOME=$_REMOTE_USER_HOME",
    `cd ${folder} && chmod +x install.sh && ./install.sh || { echo ${quoteForShell(`The feature ${id} could not be installed.`)} >&2; exit 1; }`,
    `rm -rf ${folder}`,
  ].join("\n");
};

/** Returns the variable name of an option, as the specification defines it. */
const toOptionVariable = (name: string): string =>
  name
    .replace(/[^\w]/g, "_")
    .replace(/^[\d_]+/, "_")
    .toUpperCase();
