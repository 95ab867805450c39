// Where the programs of a workspace run and what they find in their environment: the daemon's own, what the template sets, and who
// they are (rule DM-6).
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { uuidFromBytes } from "#base/ids.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import type { BinFolder } from "./bin-folder.ts";
import { findShell } from "./shell.ts";

export type Environment = Readonly<Record<string, string>>;

/** The agent's id, in the environment of everything that its daemon starts: it tells its processes from those of others. */
export const AGENT_MARK = "SLIPWAY_WORKSPACE_AGENT_ID";

type Given = Readonly<Record<string, string | undefined>>;

/** `$NAME` and `${NAME}` in the template's values stand for the daemon's own variables; names it does not know stay as they are. */
export const scriptEnvironment = (options: {
  env: Given;
  manifest: Manifest;
  url: URL;
  /** Names the file with the agent's token. */
  token: Environment;
  /** What git needs to work here; whatever is set otherwise goes first. */
  git: Environment;
  /** What the owner keeps for workspaces. */
  secrets: Environment;
  bin: Pick<BinFolder, "env" | "pathWith">;
}): Environment => {
  const { env, manifest, url, token, git, secrets, bin } = options;
  const own = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const set = Object.entries(manifest.environmentVariables).map(([name, value]) => [name, expand(value, env)]);
  const given = { ...Object.fromEntries(own), ...Object.fromEntries(set), ...secrets };
  return {
    HOME: homedir(),
    ...(manifest.vsCodePortProxyUri ? { VSCODE_PROXY_URI: manifest.vsCodePortProxyUri } : {}),
    ...git,
    ...given,
    PATH: bin.pathWith(given.PATH),
    // Editors that scripts start open terminals with it, and a daemon that a service starts has none.
    SHELL: findShell(given),
    ...bin.env,
    ...token,
    ...whoAndWhere(manifest, url, "SLIPWAY"),
    ...whoAndWhere(manifest, url, "CODER"),
    [AGENT_MARK]: toId(manifest.agentId),
  };
};

/** By our own names, and by those that scripts of the ecosystem's templates read. */
const whoAndWhere = (manifest: Manifest, url: URL, prefix: "SLIPWAY" | "CODER"): Environment => ({
  [prefix]: "true",
  [`${prefix}_WORKSPACE_NAME`]: manifest.workspaceName,
  [`${prefix}_WORKSPACE_ID`]: toId(manifest.workspaceId),
  [`${prefix}_WORKSPACE_AGENT_NAME`]: manifest.agentName,
  [`${prefix}_WORKSPACE_OWNER_NAME`]: manifest.ownerUsername,
  [`${prefix}_AGENT_URL`]: url.href,
});

/** The absolute folder a text of the template names: `~` and variables filled in, relative to the home folder; empty is the home. */
export const resolveFolder = (text: string, env: Given): string => resolvePlace(text, env, env.HOME || homedir());

/** The same for a path relative to `base`. */
export const resolvePlace = (text: string, env: Given, base: string): string => {
  const home = env.HOME || homedir();
  const expanded = expand(text === "~" || text.startsWith("~/") ? home + text.slice(1) : text, env);
  return isAbsolute(expanded) ? expanded : join(base, expanded);
};

/** Where the daemon keeps what is to be there when it starts again, outside of what people work on. */
export const stateFolder = ({ XDG_STATE_HOME, HOME }: Given): string =>
  join(XDG_STATE_HOME || join(HOME || homedir(), ".local", "state"), "slipway");

/** Replaces `$NAME` and `${NAME}` with variables; names it does not know stay as they are. */
export const expand = (text: string, env: Given): string =>
  text.replace(
    /\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g,
    (whole, braced?: string, bare?: string) => env[braced ?? bare ?? ""] ?? whole,
  );

export const toId = (bytes: Uint8Array): string => (bytes.length === 16 ? uuidFromBytes(bytes) : "");
