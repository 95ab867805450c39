// The options of commands that create a workspace from a repository: --repo and related options.
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import { usageError } from "#base/usage-error.ts";
import type { RepositoryAsked } from "#schema/templates/repository.ts";

export const REPOSITORY_VALUES = ["repo", "branch", "commit", "pull-request", "path", "configuration"] as const;

type Values = { readonly [name in (typeof REPOSITORY_VALUES)[number]]?: string | undefined };

/** Returns the repository from the options; undefined without `--repo`. */
export const toRepository = (value: Values, has: { readonly "full-history": boolean }): RepositoryAsked | undefined => {
  const { repo: url, branch, commit, path, configuration, "pull-request": pull } = value;
  if (url === undefined) {
    const unexpectedOption =
      REPOSITORY_VALUES.find((name) => value[name] !== undefined) ?? (has["full-history"] ? "full-history" : undefined);
    if (unexpectedOption !== undefined) throw usageError(`--${unexpectedOption}`, "requires --repo");
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
