// Reads configuration files other than devcontainer.json: compose files, Dockerfiles, .gitpod.yml and devfile.yaml.
import { parseYaml, YamlError } from "../yaml.ts";
import {
  addPort,
  applyImage,
  type Configuration,
  createConfiguration,
  isMapping,
  isPort,
  recordDropped,
  toLifecycle,
  toList,
  toText,
  toVariables,
  type Values,
} from "./configuration.ts";
import { applyBuild } from "./devcontainer.ts";

const parseMapping = (config: Configuration, file: string, text: string): Values => {
  try {
    const value = parseYaml(text);
    if (isMapping(value)) return value;
    recordDropped(config, file, "The file is not a mapping; the default image is used.");
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    recordDropped(config, file, `Line ${error.line} ${error.message}; the default image is used.`);
  }
  return {};
};

/** Adds image, build and environment of one service of a compose file. Records that other services are not started. */
export const applyService = (config: Configuration, file: string, text: string, service: string): void => {
  const { services } = parseMapping(config, file, text);
  const allServices: Values = isMapping(services) ? services : {};
  const serviceEntry = allServices[service];
  const others = Object.keys(allServices).filter((name) => name !== service);
  if (others.length > 0) {
    const reason = `Only the service ${service} becomes a workspace. Not started: ${others.slice(0, 20).join(", ")}.`;
    recordDropped(config, "dockerComposeFile", reason);
  }
  if (!isMapping(serviceEntry)) {
    recordDropped(config, "service", `${file} has no service ${service}; the default image is used.`);
    return;
  }
  const { build, image, environment } = serviceEntry;
  if (typeof build === "string")
    applyBuild(config, file, { dockerfile: `${build}/Dockerfile`, context: build, args: {}, target: undefined });
  else if (isMapping(build)) {
    const context = toText(build.context) ?? ".";
    const dockerfile = `${context}/${toText(build.dockerfile) ?? "Dockerfile"}`;
    applyBuild(config, file, {
      dockerfile,
      context,
      args: toVariables(config, "build.args", toPairs(build.args)),
      target: toText(build.target, 256),
    });
  } else if (image !== undefined) applyImage(config, "image", image);
  Object.assign(config.container_env, toVariables(config, "environment", toPairs(environment)));
  for (const property of UNSAFE_SERVICE_PROPERTIES) {
    if (serviceEntry[property] !== undefined)
      recordDropped(config, `${service}.${property}`, "Could reach the server's machine.");
  }
};

const UNSAFE_SERVICE_PROPERTIES = [
  ...["volumes", "privileged", "network_mode", "cap_add", "devices", "security_opt", "pid", "ipc"],
];

/** Converts `["A=1"]` to `{A: "1"}`. Returns other values unchanged. */
const toPairs = (value: unknown): unknown => {
  if (!Array.isArray(value)) return value;
  const lines = value.filter((one): one is string => typeof one === "string" && one.includes("="));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
};

/** Returns the configuration for a Dockerfile in the repository, with its folder as the context. */
export const readDockerfile = (file: string): Configuration => {
  const config = createConfiguration();
  applyBuild(config, file, { dockerfile: file.split("/").at(-1) ?? file, context: ".", args: {}, target: undefined });
  return config;
};

/** Reads .gitpod.yml: its image, tasks, ports and extensions. */
export const readGitpod = (file: string, text: string): Configuration => {
  const config = createConfiguration();
  const { image, tasks, ports, vscode } = parseMapping(config, file, text);
  if (isMapping(image)) {
    const dockerfile = toText(image.file);
    const context = toText(image.context) ?? ".";
    if (dockerfile === undefined) recordDropped(config, "image", "Names no file; the default image is used.");
    else applyBuild(config, file, { dockerfile, context, args: {}, target: undefined });
  } else if (image !== undefined) applyImage(config, "image", image);
  for (const [index, task] of toList(tasks).slice(0, 32).entries()) if (isMapping(task)) applyTask(config, task, index);
  for (const entry of toList(ports)) {
    if (!isMapping(entry) || !isPort(entry.port) || entry.onOpen === "ignore") continue;
    addPort(config, { port: entry.port, label: toText(entry.name, 128) ?? `Port ${entry.port}`, protocol: "http" });
  }
  const extensions = isMapping(vscode) ? toList(vscode.extensions) : [];
  config.extensions = extensions.flatMap((extension) => toText(extension, 256) ?? []).slice(0, 256);
  return config;
};

/** Adds a task. Its `before` and `init` run once. Its `command` runs at each start, in parallel with those of other tasks. */
const applyTask = (config: Configuration, task: Values, index: number): void => {
  const name = toText(task.name, 256) ?? `Task ${index + 1}`;
  Object.assign(config.remote_env, toVariables(config, `tasks.${name}.env`, task.env));
  const [before, init, run] = [task.before, task.init, task.command].map((one) => toText(one, 16_384));
  const prepare = [before, init].filter((line) => line !== undefined).join("\n");
  config.lifecycle.post_create.push(...toLifecycle(config, `tasks.${name}`, prepare));
  if (run === undefined) return;
  const [group] = config.lifecycle.post_start;
  const start = { name, run };
  if (group) group.push(start);
  else config.lifecycle.post_start.push([start]);
};

/** Reads devfile.yaml (devfile.io): the first container, its endpoints and environment, and the commands of the postStart event. */
export const readDevfile = (file: string, text: string): Configuration => {
  const config = createConfiguration();
  const { components, commands, events, metadata } = parseMapping(config, file, text);
  const title = isMapping(metadata) ? (toText(metadata.displayName, 256) ?? toText(metadata.name, 256)) : undefined;
  if (title !== undefined) config.title = title;
  const containers = toList(components).filter((one) => isMapping(one) && isMapping(one.container)) as Values[];
  const [first, ...others] = containers;
  if (others.length > 0) {
    const reason = `Only the first container becomes a workspace; ${others.length} more are not started.`;
    recordDropped(config, "components", reason);
  }
  const container = isMapping(first?.container) ? first.container : {};
  if (container.image !== undefined) applyImage(config, "image", container.image);
  const env = toList(container.env)
    .filter(isMapping)
    .map(({ name, value }) => [String(name), value] as const);
  config.container_env = toVariables(config, "env", Object.fromEntries(env));
  for (const { name, targetPort: port, exposure, secure, protocol: scheme } of toList(container.endpoints).filter(
    isMapping,
  )) {
    if (!isPort(port) || exposure === "none") continue;
    const protocol = secure === true || scheme === "https" ? "https" : "http";
    addPort(config, { port, label: toText(name, 128) ?? `Port ${port}`, protocol });
  }
  const memory = toText(container.memoryLimit, 32);
  if (memory !== undefined && /^\d+(?:\.\d+)?[KMGT]i?$/.test(memory)) config.wanted.memory = memory;
  const commandsById = new Map(
    toList(commands)
      .filter(isMapping)
      .map((one) => [toText(one.id), one.exec]),
  );
  const startIds = isMapping(events) ? toList(events.postStart) : [];
  for (const id of startIds.slice(0, 32)) {
    const exec = commandsById.get(toText(id));
    const line = isMapping(exec) ? toText(exec.commandLine, 16_384) : undefined;
    if (line === undefined)
      recordDropped(config, "events.postStart", `${String(id)} is not a command that a container runs.`);
    else config.lifecycle.post_start.push([{ name: String(id).slice(0, 256), run: line }]);
  }
  return config;
};
