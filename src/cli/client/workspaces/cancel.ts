// `slipway workspaces cancel WORKSPACE`: cancels the active build and waits until it has ended (rule CV-35).
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { PROGRESS_TEXTS, RESULT_TEXTS, waitForBuild } from "./build.ts";
import { selectWorkspace } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["no-wait"] });
  const findWorkspace = selectWorkspace(input, words);
  return withServer("workspaces cancel", input, value, async (remote) => {
    const workspace = await findWorkspace(remote.client);
    const { name, latest_build } = workspace;
    const requested = await requestCancel(remote.client, latest_build);
    const build = requested && !has["no-wait"] ? await waitForBuild(input, remote, name, requested) : requested;
    if (build && !["canceling", "canceled"].includes(build.job.status)) {
      throw new VerbFailure(formatTooLate(workspace, build));
    }
    if (has.json) input.print(JSON.stringify({ ...workspace, latest_build: build ?? latest_build }));
    else input.print(build ? formatResult(name, build) : `Nothing to cancel: ${name} is ${latest_build.status}.`);
  });
};

/** Requests the cancellation and returns the build; undefined if it has already ended. */
const requestCancel = async (client: Client, { id }: Build): Promise<Build | undefined> => {
  const path = `/api/v2/workspacebuilds/${id}` as const;
  // A pending build can be canceled regardless of the template, so the request names the expected status. The build may start between the
  // two requests.
  for (let build = await client.get(path); ; build = await client.get(path)) {
    const { status } = build.job;
    if (status === "canceling") return build;
    if (status !== "pending" && status !== "running") return undefined;
    try {
      await client.patch(`${path}/cancel?expect_status=${status}`);
      return await client.get(path);
    } catch (error) {
      // The build's status has changed.
      if (!(error instanceof ApiError) || ![400, 412].includes(error.status)) throw error;
    }
  }
};

const formatResult = (name: string, { transition, job }: Build): string => {
  const doing = `${PROGRESS_TEXTS[transition]} ${name}`;
  return job.status === "canceled"
    ? `Canceled: ${doing}.`
    : `Canceling: ${doing}; \`slipway workspaces show ${name}\` shows the progress.`;
};

const formatTooLate = ({ name }: Workspace, { transition, job }: Build): string =>
  job.status === "succeeded"
    ? `too late to cancel: ${name} ${RESULT_TEXTS[transition]}`
    : `${PROGRESS_TEXTS[transition]} ${name} has failed${job.error ? `: ${toPlainLine(job.error)}` : ""}`;
