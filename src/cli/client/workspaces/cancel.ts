// `slipway workspaces cancel WORKSPACE`: cancels the active build and waits until it has ended (rule CV-35).
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { awaitBuild, DOING, DONE } from "./build.ts";
import { workspaceAsked } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["no-wait"] });
  const named = workspaceAsked(input, words);
  return withServer("workspaces cancel", input, value, async (remote) => {
    const workspace = await named(remote.client);
    const { name, latest_build } = workspace;
    const asked = await askToCancel(remote.client, latest_build);
    const build = asked && !has["no-wait"] ? await awaitBuild(input, remote, name, asked) : asked;
    if (build && !["canceling", "canceled"].includes(build.job.status)) {
      throw new VerbFailure(tooLate(workspace, build));
    }
    if (has.json) input.print(JSON.stringify({ ...workspace, latest_build: build ?? latest_build }));
    else input.print(build ? said(name, build) : `Nothing to cancel: ${name} is ${latest_build.status}.`);
    return EXIT.ok;
  });
};

/** Requests the cancellation and returns the build; undefined if it has already ended. */
const askToCancel = async (client: Client, { id }: Build): Promise<Build | undefined> => {
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

const said = (name: string, { transition, job }: Build): string => {
  const doing = `${DOING[transition]} ${name}`;
  return job.status === "canceled"
    ? `Canceled: ${doing}.`
    : `Canceling: ${doing}; \`slipway workspaces show ${name}\` shows the progress.`;
};

const tooLate = ({ name }: Workspace, { transition, job }: Build): string =>
  job.status === "succeeded"
    ? `too late to cancel: ${name} ${DONE[transition]}`
    : `${DOING[transition]} ${name} has failed${job.error ? `: ${plain(job.error)}` : ""}`;
