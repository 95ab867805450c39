// What an app or a port is called in the first label of its host (rule AX-1). Pure.

/** What a host or a path names; nothing of it need exist. */
export type AppName = {
  /** The slug of an app, or a port as digits, behind which `s` means https. */
  readonly app: string;
  /** Undefined: the workspace's only agent. */
  readonly agent: string | undefined;
  readonly workspace: string;
  /** A user name; also `me` in paths. */
  readonly user: string;
};

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const PART = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** The first label of an app's host; empty when it would not be one (too long, or signs that host names have not). */
export const formatLabel = ({ app, agent, workspace, user }: AppName): string => {
  const parts = [app, agent ?? "", workspace, user].map((part) => part.toLowerCase());
  const label = parts.join("--");
  return parts.every((part) => PART.test(part)) && LABEL.test(label) ? label : "";
};
