// Reads the supported parts of a devcontainer.json (containers.dev). Ignores and records settings that would affect the server's machine:
// initializeCommand, bind mounts, privileges and engine arguments.
import { dirname } from "node:path/posix";
import type { LifecycleStep } from "#schema/templates/repository.ts";
import {
  addPort,
  applyImage,
  type Configuration,
  createConfiguration,
  isMapping,
  isPort,
  recordDropped,
  resolvePath,
  toLifecycle,
  toList,
  toText,
  toVariables,
  type Values,
} from "./configuration.ts";
import { substitute } from "./substitute.ts";

/** Maximum size of a devcontainer.json. */
const MAX_FILE_CHARS = 256 * 1024;

export type DevcontainerFile = {
  /** The file's path in the repository. */
  readonly file: string;
  readonly text: string;
  /** The repository's name. */
  readonly name: string;
  /** The project's folder, relative to the repository's top. */
  readonly folder: string;
};

/** The compose files that a devcontainer.json names. The first one describes the service. */
export type ComposeReference = { readonly files: readonly string[]; readonly service: string };

/** Returns the configuration. `compose` is set if a compose file determines the image. Never throws, even if the text is invalid. */
export const readDevcontainer = (
  source: DevcontainerFile,
): { configuration: Configuration; compose?: ComposeReference } => {
  const config = createConfiguration();
  const parsed = parseFile(source, config);
  if (!parsed) return { configuration: config };
  const settings = substitute(parsed, source, config) as Values;
  const title = toText(settings.name, 256);
  if (title !== undefined) config.title = title;
  const compose = applyImageOrBuild(settings, source, config);
  applyEnvironment(settings, config);
  applyLifecycle(settings, config);
  applyPorts(settings, config);
  applyMounts(settings, config);
  applyRequirements(settings, config);
  recordUnsafeSettings(settings, config);
  return compose ? { configuration: config, compose } : { configuration: config };
};

const parseFile = ({ file, text }: DevcontainerFile, config: Configuration): Values | undefined => {
  if (text.length > MAX_FILE_CHARS) {
    recordDropped(config, file, `The file is larger than ${MAX_FILE_CHARS / 1024} KiB; the default image is used.`);
    return undefined;
  }
  try {
    const value: unknown = Bun.JSONC.parse(text.replace(/^\uFEFF/, ""));
    if (isMapping(value)) return value;
    recordDropped(config, file, "The file is not an object; the default image is used.");
  } catch (error) {
    const { message } = error as Error;
    recordDropped(config, file, `The file is not valid JSON with comments (${message}); the default image is used.`);
  }
  return undefined;
};

const applyImageOrBuild = (
  settings: Values,
  { file }: DevcontainerFile,
  config: Configuration,
): ComposeReference | undefined => {
  const files = toList(settings.dockerComposeFile).flatMap((one) => {
    const written = toText(one);
    const path = written === undefined ? undefined : resolvePath(file, written);
    if (path === undefined) recordDropped(config, "dockerComposeFile", "A compose file must be in the repository.");
    return path === undefined ? [] : [path];
  });
  applyFeatures(settings, file, config);
  const service = toText(settings.service, 256);
  if (files.length > 0) {
    if (service !== undefined) return { files, service };
    recordDropped(config, "service", "Names the service to work in, and is missing; the default image is used.");
    return undefined;
  }
  const build = isMapping(settings.build) ? settings.build : {};
  const dockerfile = toText(build.dockerfile) ?? toText(settings.dockerFile);
  if (dockerfile === undefined) {
    if (settings.image !== undefined) applyImage(config, "image", settings.image);
    else if (settings.build !== undefined)
      recordDropped(config, "build", "Names no Dockerfile; the default image is used.");
    return undefined;
  }
  applyBuild(config, file, {
    dockerfile,
    context: toText(build.context) ?? toText(settings.context) ?? ".",
    args: toVariables(config, "build.args", build.args),
    target: toText(build.target, 256),
  });
  for (const key of Object.keys(build)) {
    if (["dockerfile", "context", "args", "target"].includes(key)) continue;
    recordDropped(config, `build.${key}`, "Slipway passes no options of its own to the engine's builder.");
  }
  return undefined;
};

/** Sets the build if its files are in the repository. */
export const applyBuild = (
  config: Configuration,
  file: string,
  build: { dockerfile: string; context: string; args: Record<string, string>; target: string | undefined },
): void => {
  const dockerfile = resolvePath(file, build.dockerfile);
  const context = resolvePath(file, build.context);
  if (dockerfile === undefined || context === undefined) {
    recordDropped(
      config,
      "build",
      "The Dockerfile and its context must be in the repository; the default image is used.",
    );
    return;
  }
  config.build = {
    dockerfile,
    context,
    args: build.args,
    ...(build.target === undefined ? {} : { target: build.target }),
  };
};

const FEATURE = /^(?:\.\/[\w./-]+|\w[\w.-]*(?::\d+)?(?:\/\w[\w.-]*)+(?:[:@][\w.:-]+)?)$/;

const applyFeatures = (settings: Values, file: string, config: Configuration): void => {
  if (!isMapping(settings.features)) return;
  for (const [id, given] of Object.entries(settings.features).slice(0, 32)) {
    const isLocal = id.startsWith("./");
    const path = isLocal ? resolvePath(file, id) : "";
    if (!FEATURE.test(id) || path === undefined || id.length > 512) {
      const reason = "Features must come from a registry or from a folder next to devcontainer.json.";
      recordDropped(config, `features.${id}`, reason);
      continue;
    }
    config.features.push({ id: isLocal ? `./${path}` : id, options: toFeatureOptions(given) });
  }
};

/** A value that is not a mapping is the feature's version. */
const toFeatureOptions = (given: unknown): Record<string, string> => {
  const shorthand = given === undefined || given === true ? {} : { version: given };
  const options = Object.entries(isMapping(given) ? given : shorthand).filter(
    ([name, value]) => /^[A-Za-z_][\w-]*$/.test(name) && ["string", "boolean", "number"].includes(typeof value),
  );
  return Object.fromEntries(options.map(([name, value]) => [name, String(value).slice(0, 4_096)]));
};

const applyEnvironment = (settings: Values, config: Configuration): void => {
  config.container_env = toVariables(config, "containerEnv", settings.containerEnv);
  config.remote_env = toVariables(config, "remoteEnv", settings.remoteEnv);
  const user = toText(settings.remoteUser, 64) ?? toText(settings.containerUser, 64);
  if (user === undefined) return;
  if (/^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$/.test(user)) config.user = user;
  else recordDropped(config, "remoteUser", "This is not the name of a user.");
};

const STEPS: Readonly<Record<string, LifecycleStep>> = {
  onCreateCommand: "on_create",
  updateContentCommand: "update_content",
  postCreateCommand: "post_create",
  postStartCommand: "post_start",
};

const applyLifecycle = (settings: Values, config: Configuration): void => {
  for (const [property, step] of Object.entries(STEPS))
    config.lifecycle[step] = toLifecycle(config, property, settings[property]);
  const waitFor = STEPS[toText(settings.waitFor) ?? ""];
  if (waitFor) config.wait_for = waitFor;
  if (settings.postAttachCommand !== undefined) {
    const reason = "Runs each time an editor attaches, which Slipway does not tell apart. Run it in a terminal.";
    recordDropped(config, "postAttachCommand", reason);
  }
};

const applyPorts = (settings: Values, config: Configuration): void => {
  const attributes = isMapping(settings.portsAttributes) ? settings.portsAttributes : {};
  for (const given of [...toList(settings.forwardPorts), ...toList(settings.appPort)]) {
    const port = typeof given === "string" && /^\d+(?::\d+)?$/.test(given) ? Number(given.split(":").at(-1)) : given;
    if (!isPort(port)) {
      recordDropped(
        config,
        "forwardPorts",
        `${JSON.stringify(given)} is a port of another container, which is not there.`,
      );
      continue;
    }
    const listed = attributes[String(port)];
    const portAttributes = isMapping(listed) ? listed : {};
    if (portAttributes.onAutoForward === "ignore") continue;
    const protocol = portAttributes.protocol === "https" ? "https" : "http";
    addPort(config, { port, label: toText(portAttributes.label, 128) ?? `Port ${port}`, protocol });
  }
};

const applyMounts = (settings: Values, config: Configuration): void => {
  const workspaceMount = toText(settings.workspaceMount, 4_096);
  const root = workspaceMount === undefined ? undefined : parseMount(workspaceMount)?.target;
  if (root !== undefined && isFolder(root)) config.root = root;
  const folder = toText(settings.workspaceFolder);
  if (folder !== undefined && (isFolder(folder) || folder.startsWith("$"))) config.folder = folder;
  for (const given of toList(settings.mounts)) {
    const mount = typeof given === "string" ? parseMount(given) : toMount(isMapping(given) ? given : { type: "none" });
    if (mount.type !== "volume" || !isFolder(mount.target)) {
      const text = (typeof given === "string" ? given : JSON.stringify(given)).slice(0, 200);
      const reason = `${text}: only volumes are mounted; the server's own folders are out of reach.`;
      recordDropped(config, "mounts", reason);
      continue;
    }
    const { source, target: path } = mount;
    const name = (source || path)
      .replace(/[^a-zA-Z0-9_-]+/g, "-")
      .replace(/^[^a-zA-Z0-9]+/, "")
      .slice(0, 64);
    const isDuplicate = config.volumes.some((volume) => volume.path === path || volume.name === name);
    if (name !== "" && config.volumes.length < 16 && !isDuplicate) config.volumes.push({ name, path });
  }
};

type Mount = { readonly type: string; readonly source: string; readonly target: string };

const parseMount = (text: string): Mount => {
  const pairs = text.split(",").map((part) => part.split("=") as [string, string?]);
  return toMount(Object.fromEntries(pairs.map(([key, value]) => [key.trim(), value ?? ""])));
};

const toMount = (values: Values): Mount => ({
  type: toText(values.type) ?? "volume",
  source: toText(values.source) ?? toText(values.src) ?? "",
  target: toText(values.target) ?? toText(values.dst) ?? toText(values.destination) ?? "",
});

/** Returns true for an absolute path without `..` outside of the folders that belong to the system or Slipway. */
const isFolder = (path: string): boolean =>
  /^\/[^:\0]+$/.test(path) &&
  !path.split("/").includes("..") &&
  !/^\/(?:proc|sys|dev|etc|opt\/slipway|var\/run|run)(?:\/|$)/.test(path);

const applyRequirements = (settings: Values, config: Configuration): void => {
  const host = isMapping(settings.hostRequirements) ? settings.hostRequirements : {};
  if (typeof host.cpus === "number" && host.cpus > 0) config.wanted.cpus = host.cpus;
  const memory = toText(host.memory, 32);
  if (memory !== undefined && /^\d+(?:\.\d+)?\s*[kmgt]?b?$/i.test(memory)) config.wanted.memory = memory;
  if (host.gpu !== undefined && host.gpu !== false)
    recordDropped(config, "hostRequirements.gpu", "Needs a template with a GPU.");
  const secrets = isMapping(settings.secrets) ? Object.entries(settings.secrets).slice(0, 64) : [];
  for (const [name, about] of secrets) {
    const description = isMapping(about) ? (toText(about.description) ?? "") : "";
    config.secrets.push({ name: name.slice(0, 256), description });
  }
  const customizations = isMapping(settings.customizations) ? settings.customizations : {};
  const vscode = isMapping(customizations.vscode) ? customizations.vscode : {};
  const extensions = [...toList(vscode.extensions), ...toList(settings.extensions)];
  config.extensions = extensions
    .flatMap((extension) => toText(extension, 256) ?? [])
    .filter((id) => /^[\w.-]+(?:@[\w.-]*)?$/.test(id))
    .slice(0, 256);
};

/** Properties that would affect the server's machine, with the reason for ignoring them. */
const UNSAFE_PROPERTIES: Readonly<Record<string, string>> = {
  initializeCommand: "Would run on the server's machine.",
  runArgs: "Arguments for the engine could reach the server's machine.",
  privileged: "Would give the container the server's machine.",
  capAdd: "Would give the container more rights.",
  securityOpt: "Would give the container more rights.",
};

/** Engine arguments that are ignored without a note, because they have no effect outside of the container. */
const HARMLESS_ARGUMENTS = new Set(["--init", "--rm", "-it", "-i", "-t"]);

const recordUnsafeSettings = (settings: Values, config: Configuration): void => {
  for (const [property, reason] of Object.entries(UNSAFE_PROPERTIES)) {
    const value = settings[property];
    if (value === undefined || value === false || value === null) continue;
    if (Array.isArray(value) && value.every((one) => HARMLESS_ARGUMENTS.has(String(one)))) continue;
    recordDropped(config, property, reason);
  }
};

/** Returns the folder of the project that `file` configures: the parent of `.devcontainer`, or else the folder with the file. */
export const toProjectFolder = (file: string): string => {
  const start = `/${file}`.indexOf("/.devcontainer");
  const folder = start >= 0 ? file.slice(0, Math.max(0, start - 1)) : dirname(file);
  return folder === "." ? "" : folder;
};
