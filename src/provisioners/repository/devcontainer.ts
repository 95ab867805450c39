// Reads the supported parts of a devcontainer.json (containers.dev). Ignores and records whatever would affect the server's machine:
// initializeCommand, bind mounts, privileges, engine arguments.
import { dirname } from "node:path/posix";
import type { LifecycleStep } from "#schema/templates/repository.ts";
import {
  addPort,
  type Configuration,
  drop,
  emptyConfiguration,
  isMapping,
  isPort,
  lifecycleOf,
  listOf,
  pathFrom,
  takeImage,
  textOf,
  type Values,
  variablesOf,
} from "./configuration.ts";
import { substitute } from "./substitute.ts";

/** Maximum size of a devcontainer.json. */
const MAX_FILE = 256 * 1024;

export type DevcontainerFile = {
  /** Its path in the repository. */
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
  const to = emptyConfiguration();
  const values = parsed(source, to);
  if (!values) return { configuration: to };
  const written = substitute(values, source, to) as Values;
  const title = textOf(written.name, 256);
  if (title !== undefined) to.title = title;
  const compose = imageOrBuild(written, source, to);
  environment(written, to);
  lifecycle(written, to);
  ports(written, to);
  mounts(written, to);
  requirements(written, to);
  refused(written, to);
  return compose ? { configuration: to, compose } : { configuration: to };
};

const parsed = ({ file, text }: DevcontainerFile, to: Configuration): Values | undefined => {
  if (text.length > MAX_FILE) {
    drop(to, file, `The file is larger than ${MAX_FILE / 1024} KiB; the default image is used.`);
    return undefined;
  }
  try {
    const value: unknown = Bun.JSONC.parse(text.replace(/^\uFEFF/, ""));
    if (isMapping(value)) return value;
    drop(to, file, "The file is not an object; the default image is used.");
  } catch (error) {
    drop(
      to,
      file,
      `The file is not valid JSON with comments (${(error as Error).message}); the default image is used.`,
    );
  }
  return undefined;
};

const imageOrBuild = (written: Values, { file }: DevcontainerFile, to: Configuration): ComposeReference | undefined => {
  const files = listOf(written.dockerComposeFile).flatMap((one) => {
    const path = textOf(one);
    const inside = path === undefined ? undefined : pathFrom(file, path);
    if (inside === undefined) drop(to, "dockerComposeFile", "A compose file must be in the repository.");
    return inside === undefined ? [] : [inside];
  });
  features(written, file, to);
  const service = textOf(written.service, 256);
  if (files.length > 0) {
    if (service !== undefined) return { files, service };
    drop(to, "service", "Names the service to work in, and is missing; the default image is used.");
    return undefined;
  }
  const build = isMapping(written.build) ? written.build : {};
  const dockerfile = textOf(build.dockerfile) ?? textOf(written.dockerFile);
  if (dockerfile === undefined) {
    if (written.image !== undefined) takeImage(to, "image", written.image);
    else if (written.build !== undefined) drop(to, "build", "Names no Dockerfile; the default image is used.");
    return undefined;
  }
  takeBuild(to, file, {
    dockerfile,
    context: textOf(build.context) ?? textOf(written.context) ?? ".",
    args: variablesOf(to, "build.args", build.args),
    target: textOf(build.target, 256),
  });
  for (const key of Object.keys(build)) {
    if (["dockerfile", "context", "args", "target"].includes(key)) continue;
    drop(to, `build.${key}`, "Slipway passes no options of its own to the engine's builder.");
  }
  return undefined;
};

/** Sets the build if its files are in the repository. */
export const takeBuild = (
  to: Configuration,
  file: string,
  build: { dockerfile: string; context: string; args: Record<string, string>; target: string | undefined },
): void => {
  const dockerfile = pathFrom(file, build.dockerfile);
  const context = pathFrom(file, build.context);
  if (dockerfile === undefined || context === undefined) {
    drop(to, "build", "The Dockerfile and its context must be in the repository; the default image is used.");
    return;
  }
  to.build = { dockerfile, context, args: build.args, ...(build.target === undefined ? {} : { target: build.target }) };
};

const FEATURE = /^(?:\.\/[\w./-]+|\w[\w.-]*(?::\d+)?(?:\/\w[\w.-]*)+(?:[:@][\w.:-]+)?)$/;

const features = (written: Values, file: string, to: Configuration): void => {
  if (!isMapping(written.features)) return;
  for (const [id, given] of Object.entries(written.features).slice(0, 32)) {
    const local = id.startsWith("./") ? pathFrom(file, id) : id;
    if (!FEATURE.test(id) || local === undefined || id.length > 512) {
      drop(to, `features.${id}`, "Features must come from a registry or from a folder next to devcontainer.json.");
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

const environment = (written: Values, to: Configuration): void => {
  to.container_env = variablesOf(to, "containerEnv", written.containerEnv);
  to.remote_env = variablesOf(to, "remoteEnv", written.remoteEnv);
  const user = textOf(written.remoteUser, 64) ?? textOf(written.containerUser, 64);
  if (user === undefined) return;
  if (/^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$/.test(user)) to.user = user;
  else drop(to, "remoteUser", "This is not the name of a user.");
};

const STEPS: Readonly<Record<string, LifecycleStep>> = {
  onCreateCommand: "on_create",
  updateContentCommand: "update_content",
  postCreateCommand: "post_create",
  postStartCommand: "post_start",
};

const lifecycle = (written: Values, to: Configuration): void => {
  for (const [property, step] of Object.entries(STEPS))
    to.lifecycle[step] = lifecycleOf(to, property, written[property]);
  const waited = STEPS[textOf(written.waitFor) ?? ""];
  if (waited) to.wait_for = waited;
  if (written.postAttachCommand !== undefined) {
    drop(
      to,
      "postAttachCommand",
      "Runs each time an editor attaches, which Slipway does not tell apart. Run it in a terminal.",
    );
  }
};

const ports = (written: Values, to: Configuration): void => {
  const attributes = isMapping(written.portsAttributes) ? written.portsAttributes : {};
  for (const given of [...listOf(written.forwardPorts), ...listOf(written.appPort)]) {
    const port = typeof given === "string" && /^\d+(?::\d+)?$/.test(given) ? Number(given.split(":").at(-1)) : given;
    if (!isPort(port)) {
      drop(to, "forwardPorts", `${JSON.stringify(given)} is a port of another container, which is not there.`);
      continue;
    }
    const about = attributes[String(port)];
    const of = isMapping(about) ? about : {};
    if (of.onAutoForward === "ignore") continue;
    const protocol = of.protocol === "https" ? "https" : "http";
    addPort(to, { port, label: textOf(of.label, 128) ?? `Port ${port}`, protocol });
  }
};

const mounts = (written: Values, to: Configuration): void => {
  const workspaceMount = textOf(written.workspaceMount, 4_096);
  const root = workspaceMount === undefined ? undefined : mountOf(workspaceMount)?.target;
  if (root !== undefined && isFolder(root)) to.root = root;
  const folder = textOf(written.workspaceFolder);
  if (folder !== undefined && (isFolder(folder) || folder.startsWith("$"))) to.folder = folder;
  for (const given of listOf(written.mounts)) {
    const mount = typeof given === "string" ? mountOf(given) : isMapping(given) ? mapped(given) : undefined;
    const words = typeof given === "string" ? given : JSON.stringify(given);
    if (mount?.type !== "volume" || !isFolder(mount.target)) {
      drop(
        to,
        "mounts",
        `${words.slice(0, 200)}: only volumes are mounted; the server's own folders are out of reach.`,
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

const mountOf = (text: string): Mount => {
  const pairs = text.split(",").map((part) => part.split("=") as [string, string?]);
  return mapped(Object.fromEntries(pairs.map(([key, value]) => [key.trim(), value ?? ""])));
};

const mapped = (values: Values): Mount => ({
  type: textOf(values.type) ?? "volume",
  source: textOf(values.source) ?? textOf(values.src) ?? "",
  target: textOf(values.target) ?? textOf(values.dst) ?? textOf(values.destination) ?? "",
});

/** Accepts a normalized absolute path outside of folders that belong to the system or Slipway. */
const isFolder = (path: string): boolean =>
  /^\/[^:\0]+$/.test(path) &&
  !path.split("/").includes("..") &&
  !/^\/(?:proc|sys|dev|etc|opt\/slipway|var\/run|run)(?:\/|$)/.test(path);

const requirements = (written: Values, to: Configuration): void => {
  const host = isMapping(written.hostRequirements) ? written.hostRequirements : {};
  if (typeof host.cpus === "number" && host.cpus > 0) to.wanted.cpus = host.cpus;
  const memory = textOf(host.memory, 32);
  if (memory !== undefined && /^\d+(?:\.\d+)?\s*[kmgt]?b?$/i.test(memory)) to.wanted.memory = memory;
  if (host.gpu !== undefined && host.gpu !== false) drop(to, "hostRequirements.gpu", "Needs a template with a GPU.");
  const secrets = isMapping(written.secrets) ? Object.entries(written.secrets).slice(0, 64) : [];
  for (const [name, about] of secrets) {
    const description = isMapping(about) ? (textOf(about.description) ?? "") : "";
    to.secrets.push({ name: name.slice(0, 256), description });
  }
  const customizations = isMapping(written.customizations) ? written.customizations : {};
  const vscode = isMapping(customizations.vscode) ? customizations.vscode : {};
  const extensions = [...listOf(vscode.extensions), ...listOf(written.extensions)];
  to.extensions = extensions
    .flatMap((one) => textOf(one, 256) ?? [])
    .filter((id) => /^[\w.-]+@?[\w.-]*$/.test(id))
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

const refused = (written: Values, to: Configuration): void => {
  for (const [property, reason] of Object.entries(REFUSED)) {
    const value = written[property];
    if (value === undefined || value === false || value === null) continue;
    if (Array.isArray(value) && value.every((one) => HARMLESS.has(String(one)))) continue;
    drop(to, property, reason);
  }
};

/** Returns the folder that the configuration in `file` is for: for `.devcontainer` and folders in it, the parent folder. */
export const folderOf = (file: string): string => {
  const at = `/${file}`.indexOf("/.devcontainer");
  const folder = at >= 0 ? file.slice(0, Math.max(0, at - 1)) : dirname(file);
  return folder === "." ? "" : folder;
};
