// `slipway schedule show WORKSPACE`: the workspace's autostart and autostop.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readArguments } from "../../arguments.ts";
import { plain, relative, span } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { workspaceAsked } from "../workspaces/find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const named = workspaceAsked(input, words);
  return withServer("schedule show", input, value, async ({ client }) => {
    const workspace = await named(client);
    input.print(has.json ? JSON.stringify(toFacts(workspace)) : described(workspace, input.clock.now()));
    return EXIT.ok;
  });
};

const toFacts = ({ id, name, autostart_schedule, next_start_at, ttl_ms, latest_build }: Workspace) => ({
  id,
  name,
  autostart_schedule: autostart_schedule ?? null,
  next_start_at: next_start_at ?? null,
  ttl_ms: ttl_ms ?? null,
  deadline: latest_build.deadline ?? null,
});

/** Formats a schedule with one row per field. */
export const described = (
  { name, autostart_schedule, next_start_at, ttl_ms, latest_build }: Workspace,
  now: number,
): string => {
  const rows: [string, string][] = [
    ["Workspace", name],
    ["Starts", autostart_schedule ?? "off"],
    ["Next start", next_start_at ? relative(next_start_at, now) : "-"],
    ["Stops", ttl_ms ? `${span(ttl_ms)} after each start` : "off"],
    ["Next stop", latest_build.deadline ? relative(latest_build.deadline, now) : "-"],
  ];
  return rows.map(([head, text]) => `${head.padEnd(10)}  ${plain(text)}`).join("\n");
};
