// Settings of lifecycle hooks: the consumer to call, and the effect of its answers.
import { choice, duration, flag, integer, type Kind } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

/** Minimum bytes of a shared secret. */
const SECRET_BYTES = 32;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Kept exactly as written, because tokens use it as their audience. */
const consumerUrl: Kind<string> = {
  accepts:
    "an https URL, or an http URL of this machine such as http://127.0.0.1:9000/hooks, without credentials and fragment",
  placeholder: "URL",
  parse(value) {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    if (!url || url.username + url.password + url.hash !== "") return undefined;
    return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname)) ? value : undefined;
  },
  print: (value) => value,
};

const sharedSecret: Kind<string> = {
  accepts: `one line of at least ${SECRET_BYTES} bytes`,
  placeholder: "SECRET",
  parse: (value) => (Buffer.byteLength(value) >= SECRET_BYTES && !/[\r\n\0]/.test(value) ? value : undefined),
  print: (value) => value,
};

export const HOOK_SETTINGS = {
  hook_url: optional(consumerUrl, {
    group: "Hooks",
    help: "The URL of the program that receives prompts, tool calls and turns of chats and decides about them (docs/hooks.md). Requires hook_secret.",
    absent: "no hooks",
  }),
  hook_secret: optional(sharedSecret, {
    group: "Hooks",
    help: "Signs requests to the hook consumer and its responses. At least 32 bytes. Prefer the environment variable or a file.",
    absent: "none",
    secret: true,
  }),
  hook_previous_secret: optional(sharedSecret, {
    group: "Hooks",
    help: "For secret rotation: responses signed with this secret are also accepted. Requests are signed with hook_secret.",
    absent: "none",
    secret: true,
  }),
  hook_timeout: setting(duration(1, 5_000), 1_500, {
    group: "Hooks",
    help: "How long the consumer can take to respond. Without a response in time, the action is rejected.",
  }),
  hook_mode: setting(choice("enforce", "observe"), "enforce", {
    group: "Hooks",
    help: "Whether the consumer's decisions take effect. `observe` sends requests and records the decisions, but doesn't change, reject or delay anything.",
  }),
  hook_enabled: setting(flag, true, {
    group: "Hooks",
    help: "The emergency switch: `false` turns hooks off and keeps the URL and secrets.",
  }),
  workspace_hooks: setting(flag, false, {
    group: "Hooks",
    help: "Whether chats also run the hooks that their workspace declares in .slipway/hooks.json. Hooks run in the workspace, so anyone who can write there can change them. Put mandatory rules into the consumer.",
  }),
  hook_ledger_days: setting(integer(1, 3_650), 30, {
    group: "Hooks",
    help: "How many days to keep hook requests and decisions, at most the newest 1,000,000.",
  }),
  hook_ledger_contents: setting(flag, false, {
    group: "Hooks",
    help: "Whether to also keep the contents of requests and responses, which include prompts and tool inputs.",
  }),
};
