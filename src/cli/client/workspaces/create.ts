// `slipway workspaces create NAME [--template NAME] [--parameter NAME=VALUE]…`: creates a workspace and waits until it runs. With `--repo
// URL` it is created from a repository, whose name is the default.

import { duration, YEAR_MS } from "#base/config/kinds.ts";
import { parseRepositoryAddress, toWorkspaceName } from "#base/links/repository-address.ts";
import { usageError } from "#base/usage-error.ts";
import type { CreateWorkspace } from "#schema/workspaces/workspace.ts";
import { ApiError } from "#src/client.ts";
import { parsePairs, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { REPOSITORY_VALUES, toRepository } from "../repository-options.ts";
import { chooseTemplate } from "../templates/find.ts";
import { finishBuild } from "./build.ts";

const SHAPE = {
  values: [...["template", "preset", "ttl", "schedule"], ...REPOSITORY_VALUES],
  lists: ["parameter"],
  switches: ["no-wait", "full-history"],
} as const;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, SHAPE);
  const repository = toRepository(value, has);
  const address = repository && parseRepositoryAddress(repository.url);
  const word =
    address && words.length === 0
      ? toWorkspaceName(address.name)
      : takeOneWord(input, words, "the new workspace's name");
  const rich_parameter_values = parsePairs("--parameter", list.parameter);
  const ttl_ms = value.ttl === undefined ? undefined : duration(60_000, YEAR_MS).parse(value.ttl);
  if (value.ttl !== undefined && ttl_ms === undefined) throw usageError("--ttl", "expected a duration such as 8h");
  return withServer("workspaces create", input, value, async (remote) => {
    const { client } = remote;
    const name = await promptIfMissing(input, word, "Name of the new workspace");
    const { template, preset } = value;
    const needsTemplate = repository === undefined || template !== undefined || preset !== undefined;
    const source = needsTemplate
      ? await chooseTemplate(input, client, { template, preset, parameters: rich_parameter_values })
      : {};
    const body: CreateWorkspace = {
      name,
      rich_parameter_values,
      ...source,
      ...(repository === undefined ? {} : { repository }),
      ...(ttl_ms === undefined ? {} : { ttl_ms }),
      ...(value.schedule === undefined ? {} : { autostart_schedule: value.schedule }),
    };
    const workspace = await client.post("/api/v2/users/me/workspaces", body).catch((error) => {
      throw repository === undefined ? error : withDeployKeyHint(error, repository.url);
    });
    return finishBuild(input, remote, workspace, workspace.latest_build, has);
  });
};

/** Adds the command that creates a deploy key to the error of a private repository. */
const withDeployKeyHint = (error: unknown, url: string): unknown =>
  error instanceof ApiError && /create a deploy key/.test(error.message)
    ? new VerbFailure(`${error.message} Run \`slipway account deploy-keys create ${toPlainLine(url)}\`.`)
    : error;
