// `slipway config show|check|example`: shows or validates the settings in effect, or prints an example file.

import { describeSettings, formatExampleFile, formatSettingsListing } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { EXIT, type RunVerb, takeSwitch } from "../verb.ts";

export const run: RunVerb = async (input) => {
  const [what = "", ...rest] = input.argv;
  if (what === "example") {
    if (rest[0] !== undefined) throw usageError(rest[0], "unexpected argument");
    input.print(formatExampleFile(SERVER_SETTINGS).trimEnd());
    return EXIT.ok;
  }
  if (what !== "show" && what !== "check") {
    throw usageError(what || "config", "expected `config show`, `config check` or `config example`");
  }
  const { isGiven: json, rest: argv } = takeSwitch(rest, "--json");
  const loaded = loadConfig({ ...input, argv });
  const rows = describeSettings(SERVER_SETTINGS, loaded);
  if (what === "check") input.print(json ? JSON.stringify({ ok: true }) : "The settings are valid.");
  else input.print(json ? JSON.stringify(rows, null, 2) : formatSettingsListing(rows));
  return EXIT.ok;
};
