// Builds and parses the name of an app or port in the first label of its host (rule AX-1). Pure.

/** The parts of a host or path. The named app, agent, workspace and user may not exist. */
export type AppName = {
  /** The slug of an app, or a port as digits; a trailing `s` means https. */
  readonly app: string;
  /** Undefined means the workspace's only agent. */
  readonly agent: string | undefined;
  readonly workspace: string;
  /** A username; also `me` in paths. */
  readonly user: string;
};

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const PART = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Returns the first label of an app's host; empty when it would be invalid (too long, or with characters not allowed in hostnames). */
export const formatLabel = ({ app, agent, workspace, user }: AppName): string => {
  const parts = [app, agent ?? "", workspace, user].map((part) => part.toLowerCase());
  const label = parts.join("--");
  return parts.every((part) => PART.test(part)) && LABEL.test(label) ? label : "";
};
