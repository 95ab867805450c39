// Decides whether a connection waits for the workspace's start scripts: `--wait=yes|no|auto`, where auto follows the template.
import { usageError } from "#base/usage-error.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Progress } from "../../progress.ts";
import { toPlainLine } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";
import { type Remote, readMessages } from "../remote.ts";
import { listAgents } from "../workspaces/find.ts";

const WAIT_CHOICES = ["yes", "no", "auto"] as const;
export type ScriptsWait = (typeof WAIT_CHOICES)[number];

/** Parses `--wait`; defaults to auto. Throws UsageError. */
export const parseScriptsWait = (given: string | undefined): ScriptsWait => {
  const found = WAIT_CHOICES.find((one) => one === (given ?? "auto"));
  if (!found) throw usageError("--wait", `expected ${WAIT_CHOICES.join(", ")}`);
  return found;
};

/** Waits until the agent's start scripts have finished or failed, if requested. */
export const waitForScripts = async (
  input: VerbInput,
  { client }: Pick<Remote, "client">,
  workspace: Workspace,
  agent_id: string,
  wait: ScriptsWait,
): Promise<void> => {
  const isRunning = (one: Workspace): boolean =>
    listAgents(one).some(
      ({ id, lifecycle_state, startup_script_behavior }) =>
        id === agent_id &&
        (lifecycle_state === "created" || lifecycle_state === "starting") &&
        (wait === "yes" || (wait === "auto" && startup_script_behavior === "blocking")),
    );
  if (wait === "no" || (wait === "auto" && !isRunning(workspace))) return;
  using progress = new Progress(input);
  for await (const { type, data } of readMessages<{ type: string; data: Workspace }>(
    client,
    `/api/v2/workspaces/${workspace.id}/watch-ws`,
  )) {
    if (type !== "data") continue;
    if (!isRunning(data)) return;
    progress.setStatus(`waiting for the startup scripts of ${toPlainLine(workspace.name)}`);
  }
};
