// The logs that a workspace's page follows.
import { useEffect, useMemo } from "preact/hooks";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { LogFeed } from "../../data/logs.ts";
import { listAgents } from "../../data/one-workspace.ts";

/** Returns the logs of the latest build and its agents. A new build starts a new feed. */
export const useFeed = (workspace: Workspace): LogFeed => {
  const { id } = workspace.latest_build;
  const feed = useMemo(() => new LogFeed(), [id]);
  useEffect(() => () => feed.end(), [feed]);
  useEffect(() => {
    feed.follow({ source: "build", path: `/workspacebuilds/${id}/logs` });
    for (const agent of listAgents(workspace)) {
      feed.follow({ source: agent.name, path: `/workspaceagents/${agent.id}/logs` });
    }
  }, [
    feed,
    listAgents(workspace)
      .map((agent) => agent.id)
      .join(" "),
  ]);
  return feed;
};
