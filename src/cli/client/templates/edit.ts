// `slipway templates edit TEMPLATE …`: how a template is called and shown, and how long its workspaces run.
import { duration } from "#base/config/kinds.ts";
import { usageError } from "#base/usage-error.ts";
import type { PatchTemplate } from "#schema/templates/template.ts";
import { type Arguments, readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { templateWanted } from "./find.ts";

const YEAR_MS = 366 * 24 * 3_600_000;
const TEXTS = { name: "name", "display-name": "display_name", description: "description", icon: "icon" } as const;
const SPANS = {
  ttl: "default_ttl_ms",
  "activity-bump": "activity_bump_ms",
  "failure-ttl": "failure_ttl_ms",
  "dormant-after": "time_til_dormant_ms",
  "delete-dormant-after": "time_til_dormant_autodelete_ms",
} as const;
const VALUES = [
  ...["name", "display-name", "description", "icon", "deprecate"],
  ...["ttl", "activity-bump", "failure-ttl", "dormant-after", "delete-dormant-after"],
] as (keyof typeof TEXTS | keyof typeof SPANS | "deprecate")[];

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: VALUES, switches: ["undeprecate"] });
  const changes = changesOf(value, has.undeprecate);
  const named = templateWanted(input, words);
  return withServer("templates edit", input, value, async ({ client }) => {
    const { id, name } = await named(client);
    const template = await client.patch(`/api/v2/templates/${id}`, changes);
    input.print(has.json ? JSON.stringify(template) : `${name} is changed.`);
    return EXIT.ok;
  });
};

/** Throws UsageError when there is nothing to change. */
const changesOf = (value: Arguments<(typeof VALUES)[number]>["value"], undeprecate: boolean): PatchTemplate => {
  const changes: Record<string, string | number> = {};
  for (const [flag, member] of Object.entries(TEXTS)) {
    const text = value[flag as keyof typeof TEXTS];
    if (text !== undefined) changes[member] = text;
  }
  for (const [flag, member] of Object.entries(SPANS)) {
    const text = value[flag as keyof typeof SPANS];
    if (text !== undefined) changes[member] = text === "off" ? 0 : spanOf(flag, text);
  }
  if (value.deprecate !== undefined && undeprecate) throw usageError("--undeprecate", "not with --deprecate");
  if (value.deprecate !== undefined) changes.deprecation_message = value.deprecate;
  if (undeprecate) changes.deprecation_message = "";
  if (Object.keys(changes).length === 0) throw usageError("templates edit", "expected what to change");
  return changes;
};

const spanOf = (flag: string, text: string): number => {
  const ms = duration(0, YEAR_MS).parse(text);
  if (ms === undefined) throw usageError(`--${flag}`, "expected a duration such as 8h, or off");
  return ms;
};
