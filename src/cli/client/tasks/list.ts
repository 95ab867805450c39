// `slipway tasks list [WORDS…] [--all]`: the caller's tasks, or all visible ones; the words are search terms.
import { readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { formatState } from "./find.ts";

const TITLE = 50;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["all"] });
  const q = [...(has.all ? [] : ["owner:me"]), ...words].join(" ");
  return withServer("tasks list", input, value, async ({ client }) => {
    const { tasks } = await client.get(`/api/v2/tasks?${new URLSearchParams({ q })}`);
    const now = input.clock.now();
    const rows = tasks.map((task) => [
      has.all ? `${plain(task.owner_name)}/${task.name}` : task.name,
      formatState(task),
      relative(task.updated_at, now),
      Bun.sliceAnsi(plain(task.current_state?.message || task.display_name), 0, TITLE, { ellipsis: "…" }),
    ]);
    if (has.json) input.print(JSON.stringify(tasks));
    else if (rows.length === 0) input.print("No tasks. Create one with `slipway tasks create TEXT`.");
    else input.print(asTable(["TASK", "STATUS", "CHANGED", "WHAT"], rows));
    return EXIT.ok;
  });
};
