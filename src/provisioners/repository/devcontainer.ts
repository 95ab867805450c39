// Reads the supported parts of a devcontainer.json (containers.dev). Ignores and records all settings that would affect the server's
// machine: initializeCommand, bind mounts, privileges, engine arguments.
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

/** The compose files that a devcontainer.json names; the first one describes the service. */
export type ComposeReference = { readonly files: readonly string[]; readonly service: string };

/** Returns the configuration. `compose` is set if image and build come from a compose file. Never throws, whatever the text contains. */
export const readDevcontainer = (
  source: DevcontainerFile,
): { configuration: Configuration; compose?: ComposeReference } => {
  const to = createConfiguration();
  const values = parseFile(source, to);
  if (!values) return { configuration: to };
  const values_ = substitute(values, source, to) as Values;
  const title = toText(values_.name, 256);
  if (title !== undefined) to.title = title;
  const compose = applyImageOrBuild(values_, source, to);
  applyEnvironment(values_, to);
  applyLifecycle(values_, to);
  applyPorts(values_, to);
  applyMounts(values_, to);
  applyRequirements(values_, to);
  recordRefused(values_, to);
  return compose ? { configuration: to, compose } : { configuration: to };
};

const parseFile = ({ file, text }: DevcontainerFile, to: Configuration): Values | undefined => {
  if (text.length > MAX_FILE_CHARS) {
    recordDropped(to, file, `The file is larger than ${MAX_FILE_CHARS / 1024} KiB; the default image is used.`);
    return undefined;
  }
  try {
    const value: unknown = Bun.JSONC.parse(text.replace(/^\uFEFF/, ""));
    if (isMapping(value)) return value;
    recordDropped(to, file, "The file is not an object; the default image is used.");
  } catch (error) {
    recordDropped(
      to,
      file,
      `The file is not valid JSON with comments (${(error as Error).message}); the default image is used.`,
    );
  }
  return undefined;
};

const applyImageOrBuild = (
  values_: Values,
  { file }: DevcontainerFile,
  to: Configuration,
): ComposeReference | undefined => {
  const files = toList(values_.dockerComposeFile).flatMap((one) => {
    const path = toText(one);
    const inside = path === undefined ? undefined : resolvePath(file, path);
    if (inside === undefined) recordDropped(to, "dockerComposeFile", "A compose file must be in the repository.");
    return inside === undefined ? [] : [inside];
  });
  applyFeatures(values_, file, to);
  const service = toText(values_.service, 256);
  if (files.length > 0) {
    if (service !== undefined) return { files, service };
    recordDropped(to, "service", "Names the service to work in, and is missing; the default image is used.");
    return undefined;
  }
  const build = isMapping(values_.build) ? values_.build : {};
  const dockerfile = toText(build.dockerfile) ?? toText(values_.dockerFile);
  if (dockerfile === undefined) {
    if (values_.image !== undefined) applyImage(to, "image", values_.image);
    else if (values_.build !== undefined) recordDropped(to, "build", "Names no Dockerfile; the default image is used.");
    return undefined;
  }
  applyBuild(to, file, {
    dockerfile,
    context: toText(build.context) ?? toText(values_.context) ?? ".",
    args: toVariables(to, "build.args", build.args),
    target: toText(build.target, 256),
  });
  for (const key of Object.keys(build)) {
    if (["dockerfile", "context", "args", "target"].includes(key)) continue;
    recordDropped(to, `build.${key}`, "Slipway passes no options of its own to the engine's builder.");
  }
  return undefined;
};

/** Sets the build if its files are in the repository. */
export const applyBuild = (
  to: Configuration,
  file: string,
  build: { dockerfile: string; context: string; args: Record<string, string>; target: string | undefined },
): void => {
  const dockerfile = resolvePath(file, build.dockerfile);
  const context = resolvePath(file, build.context);
  if (dockerfile === undefined || context === undefined) {
    recordDropped(to, "build", "The Dockerfile and its context must be in the repository; the default image is used.");
    return;
  }
  to.build = { dockerfile, context, args: build.args, ...(build.target === undefined ? {} : { target: build.target }) };
};

const FEATURE = /^(?:\.\/[\w./-]+|\w[\w.-]*(?::\d+)?(?:\/\w[\w.-]*)+(?:[:@][\w.:-]+)?)$/;

const applyFeatures = (values_: Values, file: string, to: Configuration): void => {
  if (!isMapping(values_.features)) return;
  for (const [id, given] of Object.entries(values_.features).slice(0, 32)) {
    const local = id.startsWith("./") ? resolvePath(file, id) : id;
    if (!FEATURE.test(id) || local === undefined || id.length > 512) {
      recordDropped(
        to,
        `features.${id}`,
        "Features must come from a registry or from a folder next to devcontainer.json.",
      );
      continue;
    }
    const options = isMapping(given) ? given : given === undefined || given === true ? {} : { version: given };
    const plain = Object.entries(options).flatMap(([name, value]) =>
      /^[A-Za-z_][\w-]*$/.test(name) && ["string", "boolean", "number"].includes(typeof value)
        ? [[name, String(value).slice(0, 4_096)] as const]
        : [],
    );
    to.features.push({ id: id.startsWith("./") ? `./${local}` : id, options: Object.fromEntries(plain) });
  }
};

const applyEnvironment = (values_: Values, to: Configuration): void => {
  to.container_env = toVariables(to, "containerEnv", values_.containerEnv);
  to.remote_env = toVariables(to, "remoteEnv", values_.remoteEnv);
  const user = toText(values_.remoteUser, 64) ?? toText(values_.containerUser, 64);
  if (user === undefined) return;
  if (/^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$/.test(user)) to.user = user;
  else recordDropped(to, "remoteUser", "This is not the name of a user.");
};

const STEPS: Readonly<Record<string, LifecycleStep>> = {
  onCreateCommand: "on_create",
  updateContentCommand: "update_content",
  postCreateCommand: "post_create",
  postStartCommand: "post_start",
};

const applyLifecycle = (values_: Values, to: Configuration): void => {
  for (const [property, step] of Object.entries(STEPS))
    to.lifecycle[step] = toLifecycle(to, property, values_[property]);
  const waitFor = STEPS[toText(values_.waitFor) ?? ""];
  if (waitFor) to.wait_for = waitFor;
  if (values_.postAttachCommand !== undefined) {
    recordDropped(
      to,
      "postAttachCommand",
      "Runs each time an editor attaches, which Slipway does not tell apart. Run it in a terminal.",
    );
  }
};

const applyPorts = (values_: Values, to: Configuration): void => {
  const attributes = isMapping(values_.portsAttributes) ? values_.portsAttributes : {};
  for (const given of [...toList(values_.forwardPorts), ...toList(values_.appPort)]) {
    const port = typeof given === "string" && /^\d+(?::\d+)?$/.test(given) ? Number(given.split(":").at(-1)) : given;
    if (!isPort(port)) {
      recordDropped(to, "forwardPorts", `${JSON.stringify(given)} is a port of another container, which is not there.`);
      continue;
    }
    const attributes_ = attributes[String(port)];
    const member = isMapping(attributes_) ? attributes_ : {};
    if (member.onAutoForward === "ignore") continue;
    const protocol = member.protocol === "https" ? "https" : "http";
    addPort(to, { port, label: toText(member.label, 128) ?? `Port ${port}`, protocol });
  }
};

const applyMounts = (values_: Values, to: Configuration): void => {
  const workspaceMount = toText(values_.workspaceMount, 4_096);
  const root = workspaceMount === undefined ? undefined : parseMount(workspaceMount)?.target;
  if (root !== undefined && isFolder(root)) to.root = root;
  const folder = toText(values_.workspaceFolder);
  if (folder !== undefined && (isFolder(folder) || folder.startsWith("$"))) to.folder = folder;
  for (const given of toList(values_.mounts)) {
    const mount = typeof given === "string" ? parseMount(given) : isMapping(given) ? toMount(given) : undefined;
    const commandText = typeof given === "string" ? given : JSON.stringify(given);
    if (mount?.type !== "volume" || !isFolder(mount.target)) {
      recordDropped(
        to,
        "mounts",
        `${commandText.slice(0, 200)}: only volumes are mounted; the server's own folders are out of reach.`,
      );
      continue;
    }
    const name = (mount.source || mount.target)
      .replace(/[^a-zA-Z0-9_-]+/g, "-")
      .replace(/^[^a-zA-Z0-9]+/, "")
      .slice(0, 64);
    if (
      name !== "" &&
      to.volumes.length < 16 &&
      !to.volumes.some((one) => one.path === mount.target || one.name === name)
    ) {
      to.volumes.push({ name, path: mount.target });
    }
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

/** Accepts a normalized absolute path outside of folders that belong to the system or Slipway. */
const isFolder = (path: string): boolean =>
  /^\/[^:\0]+$/.test(path) &&
  !path.split("/").includes("..") &&
  !/^\/(?:proc|sys|dev|etc|opt\/slipway|var\/run|run)(?:\/|$)/.test(path);

const applyRequirements = (values_: Values, to: Configuration): void => {
  const host = isMapping(values_.hostRequirements) ? values_.hostRequirements : {};
  if (typeof host.cpus === "number" && host.cpus > 0) to.wanted.cpus = host.cpus;
  const memory = toText(host.memory, 32);
  if (memory !== undefined && /^\d+(?:\.\d+)?\s*[kmgt]?b?$/i.test(memory)) to.wanted.memory = memory;
  if (host.gpu !== undefined && host.gpu !== false)
    recordDropped(to, "hostRequirements.gpu", "Needs a template with a GPU.");
  const secrets = isMapping(values_.secrets) ? Object.entries(values_.secrets).slice(0, 64) : [];
  for (const [name, about] of secrets) {
    const description = isMapping(about) ? (toText(about.description) ?? "") : "";
    to.secrets.push({ name: name.slice(0, 256), description });
  }
  const customizations = isMapping(values_.customizations) ? values_.customizations : {};
  const vscode = isMapping(customizations.vscode) ? customizations.vscode : {};
  const extensions = [...toList(vscode.extensions), ...toList(values_.extensions)];
  to.extensions = extensions
    .flatMap((one) => toText(one, 256) ?? [])
    .filter((id) => /^[\w.-]+(?:@[\w.-]*)?$/.test(id))
    .slice(0, 256);
};

/** Properties that would affect the server's machine, with the reason for ignoring them. */
const REFUSED: Readonly<Record<string, string>> = {
  initializeCommand: "Would run on the server's machine.",
  runArgs: "Arguments for the engine could reach the server's machine.",
  privileged: "Would give the container the server's machine.",
  capAdd: "Would give the container more rights.",
  securityOpt: "Would give the container more rights.",
};

/** Engine arguments without effect outside of the container: Slipway does the same automatically, or they concern names. */
const HARMLESS = new Set(["--init", "--rm", "-it", "-i", "-t"]);

const recordRefused = (values_: Values, to: Configuration): void => {
  for (const [property, reason] of Object.entries(REFUSED)) {
    const value = values_[property];
    if (value === undefined || value === false || value === null) continue;
    if (Array.isArray(value) && value.every((one) => HARMLESS.has(String(one)))) continue;
    recordDropped(to, property, reason);
  }
};

/** Returns the folder that the configuration in `file` is for: for `.devcontainer` and folders in it, the parent folder. */
export const toProjectFolder = (file: string): string => {
  const start = `/${file}`.indexOf("/.devcontainer");
  const folder = start >= 0 ? file.slice(0, Math.max(0, start - 1)) : dirname(file);
  return folder === "." ? "" : folder;
};
