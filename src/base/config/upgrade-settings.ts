// Settings of `slipway upgrade`. The server itself never looks at that address.
import { baseUrl, text } from "./kinds.ts";
import { optional } from "./setting.ts";

export const UPGRADE_SETTINGS = {
  release_url: optional(baseUrl, {
    group: "Upgrade",
    help: "Where `slipway upgrade` finds the newest release, such as https://downloads.example.com/slipway. Nothing else asks there.",
    absent: "`slipway upgrade` needs --file",
  }),
  release_key: optional(text, {
    group: "Upgrade",
    help: "Public keys that releases must be signed with, as minisign prints them (RW...), separated by spaces. They are accepted in addition to the built-in keys.",
    absent: "only the keys that the program was built with are trusted",
  }),
};
