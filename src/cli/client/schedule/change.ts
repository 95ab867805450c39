// `slipway schedule start|stop|extend WORKSPACE …`: sets autostart and autostop, or extends the current deadline.
import { toRfc3339 } from "#base/clock.ts";
import { duration, YEAR_MS } from "#base/config/kinds.ts";
import { usageError } from "#base/usage-error.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { parseSchedule } from "./clock-words.ts";
import { describeSchedule } from "./show.ts";

/** Values that remove a schedule. */
const OFF_VALUES = ["off", "manual"];

type Change = (input: VerbInput, words: readonly string[]) => { path: string; body: unknown };

/** Returns a command that sends one change and prints the resulting schedule. */
const createVerb =
  (verb: string, change: Change): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv);
    const [name, ...scheduleWords] = words;
    const findWorkspace = selectWorkspace(input, name === undefined ? [] : [name]);
    const { path, body } = change(input, scheduleWords);
    return withServer(`schedule ${verb}`, input, value, async ({ client }) => {
      const { id } = await findWorkspace(client);
      await client.put<unknown>(`/api/v2/workspaces/${id}/${path}`, body);
      const workspace = await reloadWorkspace(client, id);
      input.print(has.json ? JSON.stringify(workspace) : describeSchedule(workspace, input.clock.now()));
    });
  };

const reloadWorkspace = (client: Client, id: string): Promise<Workspace> => client.get(`/api/v2/workspaces/${id}`);

/** Parses the only word as milliseconds. Throws UsageError. */
const parseSpan = ([text, more]: readonly string[]): number => {
  if (more !== undefined) throw usageError(more, "unexpected argument");
  const ms = duration(60_000, YEAR_MS).parse(text ?? "");
  if (ms === undefined) throw usageError(text ?? "DURATION", "expected a duration such as 8h or 1h30m");
  return ms;
};

const isOff = (words: readonly string[]): boolean => words.length === 1 && OFF_VALUES.includes(words[0] ?? "");

export const start = createVerb("start", (_, words) => ({
  path: "autostart",
  body: isOff(words)
    ? { schedule: null }
    : { schedule: parseSchedule(words, new Intl.DateTimeFormat().resolvedOptions().timeZone) },
}));

export const stop = createVerb("stop", (_, words) => ({
  path: "ttl",
  body: { ttl_ms: isOff(words) ? null : parseSpan(words) },
}));

/** The new deadline is relative to now, so that repeating the command does not extend it further. */
export const extend = createVerb("extend", ({ clock }, words) => ({
  path: "extend",
  body: { deadline: toRfc3339(clock.now() + parseSpan(words)) },
}));
