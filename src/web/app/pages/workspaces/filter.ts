// Evaluates the search of the workspace list in the browser, so that results update in the same frame. Uses the language of the API's `q`;
// terms that only the server can evaluate are sent to it. Pure.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { parse } from "../../parts/query.ts";

type Viewer = { readonly username: string };
type Test = (row: WorkspaceSummary, viewer: Viewer) => boolean;

const flag =
  (value: string, read: (row: WorkspaceSummary) => boolean): Test =>
  (row) =>
    read(row) === /^(1|t|true)$/.test(value);

/** The keys that can be evaluated from a row. */
const LOCAL: Record<string, (value: string) => Test> = {
  owner: (value) => (row, viewer) =>
    row.owner_name.toLowerCase() === (value === "me" ? viewer.username.toLowerCase() : value),
  template: (value) => (row) => row.template_name.toLowerCase() === value,
  organization: (value) => (row) => row.organization_name.toLowerCase() === value || row.organization_id === value,
  name: (value) => (row) => row.name.toLowerCase().includes(value),
  status: (value) => (row) => row.status === value,
  id: (value) => (row) => value.split(",").includes(row.id),
  outdated: (value) => flag(value, (row) => row.outdated),
  dormant: (value) => flag(value, (row) => row.dormant_at !== undefined),
  healthy: (value) => flag(value, (row) => row.healthy),
  shared: (value) => flag(value, (row) => row.shared),
  "has-agent": (value) => (row) => row.agents.some(({ status }) => value.split(",").includes(status)),
  last_used_after: (value) => (row) => row.last_used_at.toLowerCase() > value,
  last_used_before: (value) => (row) => row.last_used_at.toLowerCase() < value,
};

/** The keys that only the server can evaluate. */
const REMOTE = ["has-ai-task", "has_external_agent", "shared_with_user", "shared_with_group", "param"];

export const KEYS = [...Object.keys(LOCAL), ...REMOTE];

/** True if the query must be sent to the server. */
export const isRemote = (q: string): boolean => parse(q).terms.some(({ key }) => LOCAL[key] === undefined);

/** Returns the matching rows in their order. */
export const filterWorkspaces = (
  rows: readonly WorkspaceSummary[],
  q: string,
  viewer: Viewer,
): readonly WorkspaceSummary[] => {
  const { terms, words } = parse(q.toLowerCase());
  const tests = terms.flatMap(({ key, value }) => LOCAL[key]?.(value) ?? []);
  if (tests.length === 0 && words.length === 0) return rows;
  const wanted = words.map((word) => word.split("/"));
  const matchesName = (row: WorkspaceSummary): boolean => {
    const name = row.name.toLowerCase();
    return wanted.every(([first = "", second]) =>
      second === undefined ? name.includes(first) : name.includes(second) && row.owner_name.toLowerCase() === first,
    );
  };
  return rows.filter((row) => tests.every((test) => test(row, viewer)) && matchesName(row));
};

/** Returns the suggested values for a key, from the current rows. */
export const listValues = (key: string, rows: Iterable<WorkspaceSummary>): string[] => {
  const fixed: Record<string, string[]> = {
    status: ["running", "stopped", "failed", "starting", "stopping", "pending", "canceled", "deleting"],
    "has-agent": ["connected", "connecting", "disconnected", "timeout"],
  };
  if (fixed[key]) return fixed[key];
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
  const found = new Set<string>(key === "owner" ? ["me"] : []);
  for (const row of rows) found.add(read(row));
  return [...found];
};
