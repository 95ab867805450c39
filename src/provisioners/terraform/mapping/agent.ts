// Maps one coder_agent with its apps, scripts and variables (facts/terraform 3.10 to 3.13, 3.22). Pure.

import { collectEnv, toApp, toScript } from "./apps-and-scripts.ts";
import { type Instance, toBlocks, toFlag, toNumber, toText, toTexts, type Values } from "./document.ts";
import { type MappedAgent, type MappedScript, MappingError, type Monitors } from "./mapped.ts";

/** The display apps, in display order. */
const DISPLAY_APPS = ["vscode", "vscode_insiders", "web_terminal", "port_forwarding_helper", "ssh_helper"] as const;
const HIDDEN_DISPLAY_APP = "vscode_insiders";
const DEFAULT_CONNECTION_TIMEOUT_S = 120;

/** The attribute with a cloud machine's identity, by resource type. */
const INSTANCE_ID_ATTRIBUTES: Readonly<Record<string, string>> = {
  google_compute_instance: "instance_id",
  aws_instance: "id",
  aws_spot_instance_request: "spot_instance_id",
  azurerm_linux_virtual_machine: "virtual_machine_id",
  azurerm_windows_virtual_machine: "virtual_machine_id",
};

export type Belongings = {
  readonly apps: readonly Instance[];
  readonly scripts: readonly Instance[];
  readonly env: readonly Instance[];
  readonly devcontainers: readonly Instance[];
  /** Its coder_agent_instance, if any. */
  readonly instance?: Instance | undefined;
};

/** Maps the agent that runs on `machine`. Throws MappingError for an invalid name or variable. */
export const toAgent = (agent: Instance, machine: Instance, belongings: Belongings): MappedAgent => {
  const { values } = agent;
  const auth = toText(values.auth) || "token";
  return {
    name: checkName(agent.name),
    os: toText(values.os),
    arch: toText(values.arch),
    directory: toText(values.dir),
    auth,
    instance_id:
      auth === "token"
        ? ""
        : toText(belongings.instance?.values.instance_id) ||
          toText(machine.values[INSTANCE_ID_ATTRIBUTES[machine.type] ?? ""]),
    token: auth === "token" ? toText(values.token) || undefined : "",
    env: collectEnv(belongings.env, toTexts(values.env)),
    display_apps: listDisplayApps(values.display_apps),
    connection_timeout: toNumber(values.connection_timeout, DEFAULT_CONNECTION_TIMEOUT_S),
    troubleshooting_url: toText(values.troubleshooting_url),
    motd_file: toText(values.motd_file),
    order: toNumber(values.order),
    api_key_scope: toText(values.api_key_scope) || "all",
    metadata: toBlocks(values.metadata).map((block) => ({
      key: toText(block.key),
      display_name: toText(block.display_name),
      script: toText(block.script),
      interval: toNumber(block.interval),
      timeout: toNumber(block.timeout),
      order: toNumber(block.order),
    })),
    monitors: toMonitors(values.resources_monitoring),
    scripts: [...listOwnScripts(values), ...belongings.scripts.map(toScript)],
    apps: belongings.apps.map(toApp),
    devcontainers: belongings.devcontainers.map((devcontainer) => ({
      name: devcontainer.name,
      workspace_folder: toText(devcontainer.values.workspace_folder),
      config_path: toText(devcontainer.values.config_path),
    })),
  };
};

const checkName = (name: string): string => {
  if (name.includes("_"))
    throw new MappingError(`The agent ${name} has an underscore in its name; use hyphens, as names of hosts do.`);
  if (!/^[a-z0-9](?:-?[a-z0-9])*$/i.test(name) || name.length > 64)
    throw new MappingError(`The agent ${name} has a name that cannot be: letters, digits and single hyphens.`);
  return name;
};

const listDisplayApps = (value: unknown): string[] => {
  const [block] = toBlocks(value);
  return DISPLAY_APPS.filter((app) => {
    const isShown = block?.[app];
    return typeof isShown === "boolean" ? isShown : app !== HIDDEN_DISPLAY_APP;
  });
};

const toMonitors = (value: unknown): Monitors => {
  const [block] = toBlocks(value);
  const [memory] = toBlocks(block?.memory);
  return {
    memory: memory ? { enabled: toFlag(memory.enabled), threshold: toNumber(memory.threshold) } : null,
    volumes: toBlocks(block?.volume)
      .map((one) => ({ path: toText(one.path), enabled: toFlag(one.enabled), threshold: toNumber(one.threshold) }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
  };
};

/** Returns the scripts that are attributes of the agent instead of coder_script resources. */
const listOwnScripts = (values: Values): MappedScript[] => {
  const start: MappedScript = {
    display_name: "Startup Script",
    icon: "/emojis/25b6-fe0f.png",
    script: toText(values.startup_script),
    log_path: "coder-startup-script.log",
    cron: "",
    timeout: 0,
    run_on_start: true,
    run_on_stop: false,
    start_blocks_login: toText(values.startup_script_behavior) === "blocking",
  };
  const stop: MappedScript = {
    ...start,
    display_name: "Shutdown Script",
    icon: "/emojis/25c0.png",
    script: toText(values.shutdown_script),
    log_path: "coder-shutdown-script.log",
    run_on_start: false,
    run_on_stop: true,
    start_blocks_login: false,
  };
  return [start, stop].filter(({ script }) => script !== "");
};
