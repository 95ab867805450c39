// The folder and environment of a workspace's programs: the daemon's own variables, the template's variables, and variables that
// identify the workspace and its owner (rule DM-6).
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { uuidFromBytes } from "#base/ids.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import type { BinFolder } from "./bin-folder.ts";
import { findShell } from "./shell.ts";

export type Environment = Readonly<Record<string, string>>;

/** The agent's ID, in the environment of every process that its daemon starts. Distinguishes these processes from others. */
export const AGENT_ID_VARIABLE = "SLIPWAY_WORKSPACE_AGENT_ID";

type ProcessEnv = Readonly<Record<string, string | undefined>>;

/** `$NAME` and `${NAME}` in the template's values expand to the daemon's own variables; unknown names are left unchanged. */
export const buildScriptEnvironment = (options: {
  env: ProcessEnv;
  manifest: Manifest;
  url: URL;
  /** Points to the file with the agent's token. */
  token: Environment;
  /** Variables for git; any other setting takes precedence. */
  git: Environment;
  /** The owner's secrets for workspaces. */
  secrets: Environment;
  bin: Pick<BinFolder, "env" | "appendTo">;
}): Environment => {
  const { env, manifest, url, token, git, secrets, bin } = options;
  const daemonVariables = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const templateVariables = Object.entries(manifest.environmentVariables).map(([name, value]) => [
    name,
    expand(value, env),
  ]);
  const combined = { ...Object.fromEntries(daemonVariables), ...Object.fromEntries(templateVariables), ...secrets };
  return {
    HOME: homedir(),
    ...(manifest.vsCodePortProxyUri ? { VSCODE_PROXY_URI: manifest.vsCodePortProxyUri } : {}),
    ...git,
    ...combined,
    PATH: bin.appendTo(combined.PATH),
    // Editors that scripts start use SHELL for their terminals, and a daemon started by a service does not have it.
    SHELL: findShell(combined),
    ...bin.env,
    ...token,
    ...identityVariables(manifest, url, "SLIPWAY"),
    ...identityVariables(manifest, url, "CODER"),
    [AGENT_ID_VARIABLE]: toId(manifest.agentId),
  };
};

/** Returns the variables that identify the workspace, for our own prefix or for the prefix that scripts of existing templates read. */
const identityVariables = (manifest: Manifest, url: URL, prefix: "SLIPWAY" | "CODER"): Environment => ({
  [prefix]: "true",
  [`${prefix}_WORKSPACE_NAME`]: manifest.workspaceName,
  [`${prefix}_WORKSPACE_ID`]: toId(manifest.workspaceId),
  [`${prefix}_WORKSPACE_AGENT_NAME`]: manifest.agentName,
  [`${prefix}_WORKSPACE_OWNER_NAME`]: manifest.ownerUsername,
  [`${prefix}_AGENT_URL`]: url.href,
});

/**
 * Resolves a folder of the template to an absolute path: expands `~` and variables. A relative path is relative to the home folder; an
 * empty one means the home folder.
 */
export const resolveFolder = (text: string, env: ProcessEnv): string => expandPath(text, env, env.HOME || homedir());

/** Resolves a path relative to `base`. */
export const expandPath = (text: string, env: ProcessEnv, base: string): string => {
  const home = env.HOME || homedir();
  const expanded = expand(text === "~" || text.startsWith("~/") ? home + text.slice(1) : text, env);
  return isAbsolute(expanded) ? expanded : join(base, expanded);
};

/** Returns the folder for state that must survive a restart of the daemon, outside of the user's files. */
export const resolveStateFolder = ({ XDG_STATE_HOME, HOME }: ProcessEnv): string =>
  join(XDG_STATE_HOME || join(HOME || homedir(), ".local", "state"), "slipway");

/** Expands `$NAME` and `${NAME}`; unknown names are left unchanged. */
export const expand = (text: string, env: ProcessEnv): string =>
  text.replace(
    /\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g,
    (match, braced?: string, bare?: string) => env[braced ?? bare ?? ""] ?? match,
  );

export const toId = (bytes: Uint8Array): string => (bytes.length === 16 ? uuidFromBytes(bytes) : "");
