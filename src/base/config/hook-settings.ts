// Settings of lifecycle hooks: the consumer that is asked, and what its answers count for.
import { choice, duration, flag, type Kind, whole } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

/** Bytes that a shared secret must have at least. */
const SECRET_BYTES = 32;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Kept as it was written: tokens name it as their audience. */
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
    help: "Signs requests to the hook's consumer and its answers. At least 32 bytes. Better given by the environment or the file.",
    absent: "none",
    secret: true,
  }),
  hook_previous_secret: optional(sharedSecret, {
    group: "Hooks",
    help: "While the secret is changed: answers signed with this one are good, too. Requests are signed with hook_secret.",
    absent: "none",
    secret: true,
  }),
  hook_timeout: setting(duration(1, 5_000), 1_500, {
    group: "Hooks",
    help: "How long the consumer can take to answer. Without an answer in time, the action is refused.",
  }),
  hook_mode: setting(choice("enforce", "observe"), "enforce", {
    group: "Hooks",
    help: "`observe` tells the consumer and writes down what it would have decided, but changes, refuses and delays nothing.",
  }),
  hook_enabled: setting(flag, true, {
    group: "Hooks",
    help: "The emergency switch: `false` turns hooks off and keeps the URL and secrets.",
  }),
  workspace_hooks: setting(flag, false, {
    group: "Hooks",
    help: "Whether programs that a workspace declares in .slipway/hooks.json are asked about its chats. They run in the workspace, so anyone who can write there can change them. Rules that must hold belong in the consumer.",
  }),
  hook_ledger_days: setting(whole(1, 3_650), 30, {
    group: "Hooks",
    help: "For how many days it is kept which dispatches there were and what was decided; of the newest 1,000,000 at most.",
  }),
  hook_ledger_contents: setting(flag, false, {
    group: "Hooks",
    help: "Whether what was sent to the consumer and what it answered is kept, too: with prompts and inputs of tools in them.",
  }),
};
