// Requests builds and waits for them: prints the log. Ctrl-C stops waiting, not the build (rule CV-6).

import { suggestName } from "#base/config/suggest.ts";
import { usageError } from "#base/usage-error.ts";
import { type Build, CALLER_REASONS, type CreateBuild, type RestartWorkspace } from "#schema/workspaces/build.ts";
import type { Transition } from "#schema/workspaces/transition.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { parsePairs, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { toPlainLine } from "../../text.ts";
import { EXIT, type VerbInput } from "../../verb.ts";
import { followJobLog, type Remote } from "../remote.ts";
import { selectWorkspace } from "./find.ts";
import { shouldWaitForReady, waitUntilReady } from "./ready.ts";

/** Texts for a build in progress and for its result. */
export const PROGRESS_TEXTS: Record<Transition, string> = { start: "starting", stop: "stopping", delete: "deleting" };
export const RESULT_TEXTS: Record<Transition, string> = {
  start: "is running",
  stop: "is stopped",
  delete: "is deleted",
};

/** Progress and result texts that replace those of the transition. */
type BuildTexts = { readonly doing: string; readonly done: string };
export type FinishOptions = { json: boolean; "no-wait": boolean; texts?: BuildTexts };

/** Parses the arguments of `start` and `restart`: the workspace, parameter values, and whether to update. */
export const readStart = (input: VerbInput) => {
  const { words, value, list, has } = readArguments(input.argv, {
    values: ["reason"],
    lists: ["parameter"],
    // Accepts --yes for programs, although there is no confirmation.
    switches: ["update", "no-wait", "yes"],
    short: { y: "yes" },
  });
  const rich_parameter_values = parsePairs("--parameter", list.parameter);
  const { reason } = value;
  if (reason !== undefined && !CALLER_REASONS.some((one) => one === reason)) {
    throw usageError("--reason", `expected one of ${CALLER_REASONS.join(", ")}.${suggestName(reason, CALLER_REASONS)}`);
  }
  const toValues = () => ({
    ...(rich_parameter_values.length > 0 ? { rich_parameter_values } : {}),
    ...(reason === undefined ? {} : { reason }),
  });
  const toBody = (workspace: Workspace) => ({
    ...toValues(),
    ...(has.update && workspace.outdated ? { template_version_id: workspace.template_active_version_id } : {}),
  });
  return { findWorkspace: selectWorkspace(input, words), value, has, toBody, toValues };
};

/** Requests a build. Returns undefined if the workspace already has the requested state. */
export const requestBuild = async (
  client: Client,
  { id, name, latest_build }: Workspace,
  body: CreateBuild,
): Promise<Build | undefined> => {
  const { status } = latest_build;
  const isReached = { start: "running", stop: "stopped", delete: "deleted" }[body.transition] === status;
  const hasChanges = body.template_version_id !== undefined || (body.rich_parameter_values?.length ?? 0) > 0;
  if (isReached && !hasChanges) return undefined;
  const request = { reason: "cli", ...body };
  return client.post(`/api/v2/workspaces/${id}/builds`, request).catch(explainRefusal({ name, status }));
};

/** Restarts the workspace on the server, which finishes even if the client stops waiting. Returns the first build. */
export const requestRestart = (
  client: Client,
  { id, name, latest_build: { status } }: Workspace,
  body: RestartWorkspace,
): Promise<Build> =>
  client.post(`/api/v2/workspaces/${id}/restart`, { reason: "cli", ...body }).catch(explainRefusal({ name, status }));

/** If another build is running, says where to see it. */
const explainRefusal =
  ({ name, status }: { name: string; status: string }) =>
  (error: unknown): never => {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    throw new VerbFailure(
      `${name} is ${status}: ${toPlainLine(error.message)} \`slipway workspaces logs ${name}\` shows its progress, \`slipway workspaces cancel ${name}\` cancels it.`,
    );
  };

/** Waits for the end of a build, prints the result and returns the exit code. */
export const finishBuild = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  workspace: Workspace,
  build: Build,
  flags: FinishOptions,
): Promise<number> => {
  const { name } = workspace;
  const { doing = PROGRESS_TEXTS[build.transition], done = RESULT_TEXTS[build.transition] } = flags.texts ?? {};
  if (flags["no-wait"]) {
    if (flags.json) input.print(JSON.stringify({ ...workspace, latest_build: build }));
    else input.print(`${name} is ${doing}. \`slipway workspaces show ${name}\` shows its progress.`);
    return EXIT.ok;
  }
  const ended = await waitForBuild(input, { client, onInterrupt }, name, build, doing);
  if (ended.job.status === "succeeded") {
    const waitsForAgents = build.transition === "start" && shouldWaitForReady(input);
    const outcome = waitsForAgents ? await waitUntilReady(input, { client, onInterrupt }, workspace) : undefined;
    if (flags.json) input.print(JSON.stringify({ ...workspace, latest_build: outcome?.build ?? ended }));
    else if (outcome === undefined || outcome.problem === "") input.print(`${name} ${done}.`);
    if (!outcome || outcome.problem === "") return EXIT.ok;
    throw new VerbFailure(`${name} was started, but ${outcome.problem}`);
  }
  if (flags.json) input.print(JSON.stringify({ ...workspace, latest_build: ended }));
  const reason = ended.job.error ? `: ${toPlainLine(ended.job.error)}` : "";
  const hasFailed = ended.job.status !== "canceled";
  // Suggests how to delete a workspace whose resources cannot be removed.
  const next =
    build.transition === "delete" && hasFailed
      ? `\nTemplate administrators can delete it anyway with \`slipway workspaces delete ${name} --orphan\`. Resources that cannot be removed are left behind.`
      : "";
  throw new VerbFailure(`${doing} ${name} ${hasFailed ? "failed" : "was canceled"}${reason}${next}`);
};

/** Returns the build once it has succeeded or failed. */
export const waitForBuild = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  name: string,
  build: Build,
  action = PROGRESS_TEXTS[build.transition],
): Promise<Build> => {
  using progress = new Progress(input);
  const isCanceling = build.job.status === "canceling";
  const doing = `${isCanceling ? "canceling" : action} ${name}`;
  onInterrupt(() => {
    progress[Symbol.dispose]();
    const logsHint = `\`slipway workspaces logs ${name} --follow\` shows its progress`;
    const cancelHint = isCanceling ? "" : `, \`slipway workspaces cancel ${name}\` cancels it`;
    input.printError(`No longer waiting; ${doing} continues. ${logsHint}${cancelHint}.\n`);
  });
  const { queue_position, queue_size } = build.job;
  progress.setStatus(queue_position > 1 ? `${doing}, ${queue_position} of ${queue_size} in the queue` : doing);
  const path = `/api/v2/workspacebuilds/${build.id}` as const;
  for await (const { output, stage } of followJobLog(input.clock, client, path)) {
    progress.printLine(output, stage);
  }
  return client.get(path);
};
