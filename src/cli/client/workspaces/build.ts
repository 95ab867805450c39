// Requests builds and waits for them: prints the log. Ctrl-C stops waiting, not the build (rule CV-6).

import { didYouMean } from "#base/config/nearest.ts";
import { usageError } from "#base/usage-error.ts";
import { type Build, CALLER_REASONS, type CreateBuild, type RestartWorkspace } from "#schema/workspaces/build.ts";
import type { Transition } from "#schema/workspaces/transition.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { pairs, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { plain } from "../../text.ts";
import { EXIT, type VerbInput } from "../../verb.ts";
import { jobLog, type Remote } from "../remote.ts";
import { workspaceAsked } from "./find.ts";
import { mustBeReady, openAgents } from "./ready.ts";

/** Progress and result texts of a build. */
export const DOING: Record<Transition, string> = { start: "starting", stop: "stopping", delete: "deleting" };
export const DONE: Record<Transition, string> = { start: "is running", stop: "is stopped", delete: "is deleted" };

/** Progress and result texts that replace those of the transition. */
type Words = { readonly doing: string; readonly done: string };
export type Flags = { json: boolean; "no-wait": boolean; words?: Words };

/** Parses the arguments of `start` and `restart`: the workspace, parameter values, and whether to update. */
export const readStart = (input: VerbInput) => {
  const { words, value, list, has } = readArguments(input.argv, {
    values: ["reason"],
    lists: ["parameter"],
    // Accepts --yes for programs, although there is no confirmation.
    switches: ["update", "no-wait", "yes"],
    short: { y: "yes" },
  });
  const rich_parameter_values = pairs("--parameter", list.parameter);
  const { reason } = value;
  if (reason !== undefined && !CALLER_REASONS.some((one) => one === reason)) {
    throw usageError("--reason", `expected one of ${CALLER_REASONS.join(", ")}.${didYouMean(reason, CALLER_REASONS)}`);
  }
  const valuesFor = () => ({
    ...(rich_parameter_values.length > 0 ? { rich_parameter_values } : {}),
    ...(reason === undefined ? {} : { reason }),
  });
  const bodyFor = (workspace: Workspace) => ({
    ...valuesFor(),
    ...(has.update && workspace.outdated ? { template_version_id: workspace.template_active_version_id } : {}),
  });
  return { named: workspaceAsked(input, words), value, has, bodyFor, valuesFor };
};

/** Requests a build. Returns undefined if the workspace already has the requested state. */
export const askForBuild = async (
  client: Client,
  { id, name, latest_build }: Workspace,
  body: CreateBuild,
): Promise<Build | undefined> => {
  const { status } = latest_build;
  const isThere = { start: "running", stop: "stopped", delete: "deleted" }[body.transition] === status;
  const changes = body.template_version_id !== undefined || (body.rich_parameter_values?.length ?? 0) > 0;
  if (isThere && !changes) return undefined;
  const ask = { reason: "cli", ...body };
  return client.post(`/api/v2/workspaces/${id}/builds`, ask).catch(explainRefusal({ name, status }));
};

/** Restarts the workspace on the server, which finishes even if the client stops waiting. Returns the first build. */
export const askForRestart = (
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
      `${name} is ${status}: ${plain(error.message)} \`slipway workspaces logs ${name}\` shows its progress, \`slipway workspaces cancel ${name}\` cancels it.`,
    );
  };

/** Waits for the end of a build, prints the result and returns the exit code. */
export const finishBuild = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  workspace: Workspace,
  build: Build,
  flags: Flags,
): Promise<number> => {
  const { name } = workspace;
  const { doing, done } = flags.words ?? { doing: DOING[build.transition], done: DONE[build.transition] };
  const ended = flags["no-wait"] ? build : await awaitBuild(input, { client, onInterrupt }, name, build, doing);
  if (flags["no-wait"]) {
    if (flags.json) input.print(JSON.stringify({ ...workspace, latest_build: ended }));
    else input.print(`${name} is ${doing}. \`slipway workspaces show ${name}\` shows its progress.`);
    return EXIT.ok;
  }
  if (ended.job.status === "succeeded") {
    const isAwaited = build.transition === "start" && mustBeReady(input);
    const open = isAwaited ? await openAgents(input, { client, onInterrupt }, workspace) : undefined;
    if (flags.json) input.print(JSON.stringify({ ...workspace, latest_build: open?.build ?? ended }));
    else if (open === undefined || open.words === "") input.print(`${name} ${done}.`);
    if (!open || open.words === "") return EXIT.ok;
    throw new VerbFailure(`${name} was started, but ${open.words}`);
  }
  if (flags.json) input.print(JSON.stringify({ ...workspace, latest_build: ended }));
  const why = ended.job.error ? `: ${plain(ended.job.error)}` : "";
  const isFailed = ended.job.status !== "canceled";
  // Suggests how to delete a workspace whose resources cannot be removed.
  const next =
    build.transition === "delete" && isFailed
      ? `\nTemplate administrators can delete it anyway with \`slipway workspaces delete ${name} --orphan\`. Resources that cannot be removed are left behind.`
      : "";
  throw new VerbFailure(`${doing} ${name} ${isFailed ? "failed" : "was canceled"}${why}${next}`);
};

/** Returns the build once it has succeeded or failed. */
export const awaitBuild = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  name: string,
  build: Build,
  what = DOING[build.transition],
): Promise<Build> => {
  using progress = new Progress(input);
  const isCanceling = build.job.status === "canceling";
  const doing = `${isCanceling ? "canceling" : what} ${name}`;
  onInterrupt(() => {
    progress[Symbol.dispose]();
    const shown = `\`slipway workspaces logs ${name} --follow\` shows its progress`;
    const ended = isCanceling ? "" : `, \`slipway workspaces cancel ${name}\` cancels it`;
    input.printError(`No longer waiting; ${doing} continues. ${shown}${ended}.\n`);
  });
  const { queue_position, queue_size } = build.job;
  progress.status(queue_position > 1 ? `${doing}, ${queue_position} of ${queue_size} in the queue` : doing);
  const path = `/api/v2/workspacebuilds/${build.id}` as const;
  for await (const { output, stage } of jobLog(input.clock, client, path)) {
    progress.line(output, stage);
  }
  return client.get(path);
};
