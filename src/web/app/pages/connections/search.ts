// The search keys of the connection log and their values.
const DAY_COUNT = 7;
const DAY_MS = 24 * 3_600_000;

/** The start times of the last days, UTC, newest first. */
const listDays = (): string[] =>
  Array.from(
    { length: DAY_COUNT },
    (_, daysAgo) => `${new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10)}T00:00:00Z`,
  );

const VALUES: Readonly<Record<string, () => readonly string[]>> = {
  type: () => ["ssh", "vscode", "jetbrains", "reconnecting_pty", "workspace_app", "port_forwarding"],
  status: () => ["ongoing", "completed"],
  username: () => ["me"],
  user_email: () => [],
  workspace_owner: () => ["me"],
  workspace_owner_email: () => [],
  workspace_id: () => [],
  organization: () => [],
  connection_id: () => [],
  connected_after: listDays,
  connected_before: listDays,
};

export const KEYS = Object.keys(VALUES);

export const listValues = (key: string): readonly string[] => VALUES[key]?.() ?? [];
