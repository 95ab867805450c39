// Settings of the client commands: the server's URL and the token. Flags `--url`, `--token`; variables SLIPWAY_URL, SLIPWAY_TOKEN;
// otherwise the session stored by `login`.
import { baseUrl, text } from "./kinds.ts";
import { optional, setting, type Values } from "./setting.ts";

export const CLIENT_ENV_PREFIX = "SLIPWAY_";

export const CLIENT_SETTINGS = {
  url: setting(baseUrl, new URL("http://127.0.0.1:7080/"), {
    group: "Connection",
    help: "The server's URL. Default: the URL of the last `slipway login`.",
  }),
  token: optional(text, {
    group: "Connection",
    help: "A session or API token. Prefer the environment variable: other users of the machine can read flags.",
    absent: "the token of the last `slipway login`",
    secret: true,
  }),
} as const;

export type ClientConfig = Values<typeof CLIENT_SETTINGS>;
