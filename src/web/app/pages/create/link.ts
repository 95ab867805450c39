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
export const readLink = (query: string): PrefilledForm => {
  const requested = new URLSearchParams(query);
  const parameters: Record<string, string> = {};
  for (const [name, value] of requested)
    if (name.startsWith(PARAMETER_PREFIX)) parameters[name.slice(PARAMETER_PREFIX.length)] = value;
  const [template, name, preset] = ["template", "name", "preset"].map((one) => requested.get(one) ?? undefined);
  return { template, name, preset, parameters };
};

/** Returns the path with its query. Parameters that the preset sets are omitted. */
export const linkTo = ({ template, preset, parameters }: PrefilledForm): string => {
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
export const readRepository = (query: string): RepositoryAsked | undefined => {
  const requested = new URLSearchParams(query);
  const url = requested.get("repo");
  if (url === null) return undefined;
  const given = QUERY_NAMES.flatMap(([member, name]) => (requested.get(name) ? [[member, requested.get(name)]] : []));
  const pull = Number(requested.get("pull_request"));
  return {
    url: url.trim(),
    ...Object.fromEntries(given),
    ...(Number.isInteger(pull) && pull > 0 ? { pull_request: pull } : {}),
    ...(requested.get("full_history") === "true" ? { full_history: true } : {}),
  };
};

/** Returns the address of the page that opens the repository. */
export const toRepositoryUrl = (requested: RepositoryAsked): string => {
  const query = new URLSearchParams({ repo: requested.url });
  for (const [member, name] of QUERY_NAMES) if (requested[member]) query.set(name, requested[member]);
  if (requested.pull_request !== undefined) query.set("pull_request", String(requested.pull_request));
  if (requested.full_history) query.set("full_history", "true");
  return `/new?${query}`;
};
