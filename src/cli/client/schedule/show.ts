// `slipway schedule show WORKSPACE`: the workspace's autostart and autostop.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readArguments } from "../../arguments.ts";
import { formatFields } from "../../options.ts";
import { formatRelative, formatSpan } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findWorkspace = selectWorkspace(input, words);
  return withServer("schedule show", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    input.print(
      has.json ? JSON.stringify(toScheduleFields(workspace)) : describeSchedule(workspace, input.clock.now()),
    );
  });
};

const toScheduleFields = ({ id, name, autostart_schedule, next_start_at, ttl_ms, latest_build }: Workspace) => ({
  id,
  name,
  autostart_schedule: autostart_schedule ?? null,
  next_start_at: next_start_at ?? null,
  ttl_ms: ttl_ms ?? null,
  deadline: latest_build.deadline ?? null,
});

/** Formats a schedule with one row per field. */
export const describeSchedule = (
  { name, autostart_schedule, next_start_at, ttl_ms, latest_build }: Workspace,
  now: number,
): string =>
  formatFields([
    ["Workspace", name],
    ["Starts", autostart_schedule ?? "off"],
    ["Next start", next_start_at ? formatRelative(next_start_at, now) : "-"],
    ["Stops", ttl_ms ? `${formatSpan(ttl_ms)} after each start` : "off"],
    ["Next stop", latest_build.deadline ? formatRelative(latest_build.deadline, now) : "-"],
  ]);
