// `slipway tasks list [WORDS…] [--all]`: the caller's tasks, or all visible ones; the words are search terms.
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { formatState } from "./find.ts";

const MAX_TITLE_LENGTH = 50;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["all"] });
  const q = [...(has.all ? [] : ["owner:me"]), ...words].join(" ");
  return withServer("tasks list", input, value, async ({ client }) => {
    const { tasks } = await client.get(`/api/v2/tasks?${new URLSearchParams({ q })}`);
    const now = input.clock.now();
    const rows = tasks.map((task) => [
      has.all ? `${toPlainLine(task.owner_name)}/${task.name}` : task.name,
      formatState(task),
      formatRelative(task.updated_at, now),
      Bun.sliceAnsi(toPlainLine(task.current_state?.message || task.display_name), 0, MAX_TITLE_LENGTH, {
        ellipsis: "…",
      }),
    ]);
    if (has.json) input.print(JSON.stringify(tasks));
    else if (rows.length === 0) input.print("No tasks. Create one with `slipway tasks create TEXT`.");
    else input.print(formatTable(["TASK", "STATUS", "CHANGED", "MESSAGE"], rows));
  });
};
