// Evaluates the search of the workspace list in the browser, so that results update in the same frame. Uses the language of the API's `q`;
// terms that only the server can evaluate are sent to it. Pure.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { parseQuery } from "../../parts/query.ts";

type Viewer = { readonly username: string };
type RowTest = (row: WorkspaceSummary, viewer: Viewer) => boolean;

const testFlag =
  (value: string, readFlag: (row: WorkspaceSummary) => boolean): RowTest =>
  (row) =>
    readFlag(row) === /^(1|t|true)$/.test(value);

/** The keys that can be evaluated from a row. */
const LOCAL_TESTS: Record<string, (value: string) => RowTest> = {
  owner: (value) => (row, viewer) =>
    row.owner_name.toLowerCase() === (value === "me" ? viewer.username.toLowerCase() : value),
  template: (value) => (row) => row.template_name.toLowerCase() === value,
  organization: (value) => (row) => row.organization_name.toLowerCase() === value || row.organization_id === value,
  name: (value) => (row) => row.name.toLowerCase().includes(value),
  status: (value) => (row) => row.status === value,
  id: (value) => (row) => value.split(",").includes(row.id),
  outdated: (value) => testFlag(value, (row) => row.outdated),
  dormant: (value) => testFlag(value, (row) => row.dormant_at !== undefined),
  healthy: (value) => testFlag(value, (row) => row.healthy),
  shared: (value) => testFlag(value, (row) => row.shared),
  "has-agent": (value) => (row) => row.agents.some(({ status }) => value.split(",").includes(status)),
  last_used_after: (value) => (row) => row.last_used_at.toLowerCase() > value,
  last_used_before: (value) => (row) => row.last_used_at.toLowerCase() < value,
};

/** The keys that only the server can evaluate. */
const REMOTE_KEYS = ["has-ai-task", "has_external_agent", "shared_with_user", "shared_with_group", "param"];

export const KEYS = [...Object.keys(LOCAL_TESTS), ...REMOTE_KEYS];

/** True if the query must be sent to the server. */
export const needsServer = (q: string): boolean =>
  parseQuery(q).terms.some(({ key }) => LOCAL_TESTS[key] === undefined);

/** Returns the matching rows in their order. */
export const filterWorkspaces = (
  rows: readonly WorkspaceSummary[],
  q: string,
  viewer: Viewer,
): readonly WorkspaceSummary[] => {
  const { terms, words } = parseQuery(q.toLowerCase());
  const tests = terms.flatMap(({ key, value }) => LOCAL_TESTS[key]?.(value) ?? []);
  if (tests.length === 0 && words.length === 0) return rows;
  const nameWords = words.map((word) => word.split("/"));
  const matchesName = (row: WorkspaceSummary): boolean => {
    const name = row.name.toLowerCase();
    return nameWords.every(([first = "", second]) =>
      second === undefined ? name.includes(first) : name.includes(second) && row.owner_name.toLowerCase() === first,
    );
  };
  return rows.filter((row) => tests.every((test) => test(row, viewer)) && matchesName(row));
};

/** Returns the suggested values for a key, from the current rows. */
export const listValues = (key: string, rows: Iterable<WorkspaceSummary>): string[] => {
  const fixedValues: Record<string, string[]> = {
    status: ["running", "stopped", "failed", "starting", "stopping", "pending", "canceled", "deleting"],
    "has-agent": ["connected", "connecting", "disconnected", "timeout"],
  };
  if (fixedValues[key]) return fixedValues[key];
  if (["outdated", "dormant", "healthy", "shared", "has-ai-task", "has_external_agent"].includes(key)) {
    return ["true", "false"];
  }
  const readers: Record<string, (row: WorkspaceSummary) => string> = {
    owner: (row) => row.owner_name,
    template: (row) => row.template_name,
    organization: (row) => row.organization_name,
  };
  const read = readers[key];
  if (!read) return key === "shared_with_user" ? ["me"] : [];
  const values = new Set<string>(key === "owner" ? ["me"] : []);
  for (const row of rows) values.add(read(row));
  return [...values];
};
