// `slipway workspaces create NAME [--template NAME] [--parameter NAME=VALUE]…`: makes a workspace and waits until it runs. With `--repo URL` it is
// made from a repository, whose name it takes over when none is given.

import { duration } from "#base/config/kinds.ts";
import { parseRepositoryAddress, workspaceNameFor } from "#base/links/repository-address.ts";
import { usageError } from "#base/usage-error.ts";
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import type { CreateWorkspace } from "#schema/workspaces/workspace.ts";
import { pairs, readArguments } from "../../arguments.ts";
import { oneWord, orAsked } from "../../asked.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { presetNamed, templateAsked } from "../templates/find.ts";
import { finishBuild } from "./build.ts";

const YEAR_MS = 366 * 24 * 3_600_000;
const REPOSITORY_VALUES = ["repo", "branch", "commit", "pull-request", "path", "configuration"] as const;
const SHAPE = {
  values: [...["template", "preset", "ttl", "schedule"], ...REPOSITORY_VALUES],
  lists: ["parameter"],
  switches: ["no-wait", "full-history"],
} as const;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, SHAPE);
  const repository = repositoryOf(value, has);
  const address = repository && parseRepositoryAddress(repository.url);
  const word =
    address && words.length === 0 ? workspaceNameFor(address.name) : oneWord(input, words, "the new workspace's name");
  const rich_parameter_values = pairs("--parameter", list.parameter);
  const ttl_ms = value.ttl === undefined ? undefined : duration(60_000, YEAR_MS).parse(value.ttl);
  if (value.ttl !== undefined && ttl_ms === undefined) throw usageError("--ttl", "expected a duration such as 8h");
  return withServer("workspaces create", input, value, async (remote) => {
    const { client } = remote;
    const name = await orAsked(input, word, "Name of the new workspace");
    const isAsked = repository === undefined || value.template !== undefined || value.preset !== undefined;
    const template = isAsked ? await templateAsked(input, client, value.template) : undefined;
    const preset =
      value.preset === undefined || !template
        ? undefined
        : await presetNamed(client, template, value.preset, rich_parameter_values);
    const workspace = await client.post("/api/v2/users/me/workspaces", {
      name,
      rich_parameter_values,
      ...(preset && template
        ? { template_version_preset_id: preset, template_version_id: template.active_version_id }
        : template
          ? { template_id: template.id }
          : {}),
      ...(repository === undefined ? {} : { repository }),
      ...(ttl_ms === undefined ? {} : { ttl_ms }),
      ...(value.schedule === undefined ? {} : { autostart_schedule: value.schedule }),
    } satisfies CreateWorkspace);
    return finishBuild(input, remote, workspace, workspace.latest_build, has);
  });
};

type Values = { readonly [name in (typeof REPOSITORY_VALUES)[number]]?: string | undefined };

/** What the options say of a repository; undefined without `--repo`. */
const repositoryOf = (value: Values, has: { readonly "full-history": boolean }): RepositoryAsked | undefined => {
  const { repo: url, branch, commit, path, configuration, "pull-request": pull } = value;
  if (url === undefined) {
    const stray =
      REPOSITORY_VALUES.find((name) => value[name] !== undefined) ?? (has["full-history"] ? "full-history" : undefined);
    if (stray !== undefined)
      throw usageError(`--${stray}`, "is only for workspaces from a repository: name one with --repo");
    return undefined;
  }
  if (!parseRepositoryAddress(url)) throw usageError("--repo", "expected a link such as https://github.com/acme/app");
  if (pull !== undefined && !/^[1-9]\d{0,9}$/.test(pull)) throw usageError("--pull-request", "expected a number");
  return {
    url,
    ...(branch === undefined ? {} : { branch }),
    ...(commit === undefined ? {} : { commit }),
    ...(pull === undefined ? {} : { pull_request: Number(pull) }),
    ...(path === undefined ? {} : { path }),
    ...(configuration === undefined ? {} : { configuration }),
    ...(has["full-history"] ? { full_history: true } : {}),
  };
};
