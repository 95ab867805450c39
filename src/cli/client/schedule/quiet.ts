// `slipway schedule quiet [TIME|off] [ZONE]`: the user's quiet hours, in which a stop that a template requires takes place.
import { readArguments } from "../../arguments.ts";
import { formatRelative } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { parseSchedule } from "./clock-words.ts";

const PATH = "/api/v2/users/me/quiet-hours";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const isOff = words.length === 1 && words[0] === "off";
  const localZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const schedule = words.length === 0 ? undefined : isOff ? "" : parseSchedule(words, localZone);
  return withServer("schedule quiet", input, value, async ({ client }) => {
    const hours = schedule === undefined ? await client.get(PATH) : await client.put(PATH, { schedule });
    const defaultNote = hours.user_set ? "" : ", the default";
    const next = formatRelative(hours.next, input.clock.now());
    const message = `Required stops happen at ${hours.time} (${hours.timezone})${defaultNote}; next ${next}.`;
    input.print(has.json ? JSON.stringify(hours) : message);
  });
};
