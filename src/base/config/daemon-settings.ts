// Settings of the daemon inside a workspace (command `agent`). Same mechanism as the server's, with flags `--token`, `--url` and variables
// SLIPWAY_AGENT_TOKEN, SLIPWAY_AGENT_URL. There is no settings file.
import { baseUrl, duration, path, text, YEAR_MS } from "./kinds.ts";
import { logSettings } from "./log-settings.ts";
import { optional, type Values } from "./setting.ts";

export const DAEMON_ENV_PREFIX = "SLIPWAY_AGENT_";

export const DAEMON_SETTINGS = {
  url: optional(baseUrl, {
    group: "Connection",
    help: "The server's access URL.",
    absent: "the variable CODER_AGENT_URL; required",
    otherVariable: "CODER_AGENT_URL",
  }),
  token: optional(text, {
    group: "Connection",
    help: "The agent's token. Prefer the environment variable or a file: other users of the machine can read flags.",
    absent: "the variable CODER_AGENT_TOKEN, else read from the token file",
    otherVariable: "CODER_AGENT_TOKEN",
    secret: true,
  }),
  token_file: optional(path, {
    group: "Connection",
    help: "A file that contains the agent's token, read at start.",
    absent: "the variable CODER_AGENT_TOKEN_FILE, else none",
    otherVariable: "CODER_AGENT_TOKEN_FILE",
  }),
  folder: optional(path, {
    group: "Connection",
    help: "The folder of the workspace. The daemon exits when this folder or the token file is deleted.",
    absent: "none",
  }),
  orphan_timeout: optional(duration(1_000, YEAR_MS), {
    group: "Connection",
    help: "How long the server can be unreachable before the daemon exits, such as 1d.",
    absent: "the daemon waits for the server indefinitely",
  }),
  ...logSettings("How much the daemon logs about itself."),
} as const;

export type DaemonConfig = Values<typeof DAEMON_SETTINGS>;
