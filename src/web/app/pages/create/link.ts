// Links that open the form filled in: /new?template=node&preset=Full&name=web&param.region=eu, and /new?repo=URL&branch=main for a
// repository. Pure.
import type { RepositoryAsked } from "#schema/templates/repository.ts";

export type PrefilledForm = {
  readonly template?: string;
  readonly name?: string;
  readonly preset?: string;
  readonly parameters: Readonly<Record<string, string>>;
};

const PARAMETER_PREFIX = "param.";

/** Reads form values from the query of an address and ignores unknown ones. */
export const parseLink = (query: string): PrefilledForm => {
  const parameterValues = new URLSearchParams(query);
  const parameters: Record<string, string> = {};
  for (const [name, value] of parameterValues)
    if (name.startsWith(PARAMETER_PREFIX)) parameters[name.slice(PARAMETER_PREFIX.length)] = value;
  const [template, name, preset] = ["template", "name", "preset"].map((one) => parameterValues.get(one) ?? undefined);
  return { template, name, preset, parameters };
};

/** Returns the path with its query. Parameters that the preset sets are omitted. */
export const formatLink = ({ template, preset, parameters }: PrefilledForm): string => {
  const query = new URLSearchParams();
  if (template) query.set("template", template);
  if (preset) query.set("preset", preset);
  for (const [name, value] of Object.entries(parameters)) query.set(`${PARAMETER_PREFIX}${name}`, value);
  return `/new${query.size > 0 ? `?${query}` : ""}`;
};

/** The members of a repository and their query parameters. */
const QUERY_NAMES = [
  ["branch", "branch"],
  ["commit", "commit"],
  ["path", "path"],
  ["configuration", "configuration"],
] as const;

/** Returns the repository in the query; undefined if none exists. */
export const parseRepository = (query: string): RepositoryAsked | undefined => {
  const values = new URLSearchParams(query);
  const url = values.get("repo");
  if (url === null) return undefined;
  const members = QUERY_NAMES.flatMap(([member, name]) => (values.get(name) ? [[member, values.get(name)]] : []));
  const pullRequest = Number(values.get("pull_request"));
  return {
    url: url.trim(),
    ...Object.fromEntries(members),
    ...(Number.isInteger(pullRequest) && pullRequest > 0 ? { pull_request: pullRequest } : {}),
    ...(values.get("full_history") === "true" ? { full_history: true } : {}),
  };
};

/** Returns the address of the page that opens the repository. */
export const toRepositoryUrl = (repository: RepositoryAsked): string => {
  const query = new URLSearchParams({ repo: repository.url });
  for (const [member, name] of QUERY_NAMES) if (repository[member]) query.set(name, repository[member]);
  if (repository.pull_request !== undefined) query.set("pull_request", String(repository.pull_request));
  if (repository.full_history) query.set("full_history", "true");
  return `/new?${query}`;
};
