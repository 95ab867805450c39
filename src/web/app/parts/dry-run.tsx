// A dry run of a template version: its live log, and the resources that a workspace would have. No workspace is created.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { PlannedResource } from "#schema/templates/template-version.ts";
import type { CreateDryRun } from "#schema/workspaces/dry-run.ts";
import { call, formatError } from "../data/api.ts";
import { LogFeed } from "../data/logs.ts";
import { Icon } from "./icon.tsx";
import { LogView } from "./log-view.tsx";

type DryRunProps = {
  readonly version_id: string;
  readonly body: CreateDryRun;
  /** Called when it succeeds. */
  readonly onSuccess?: () => void;
};

/** Starts when mounted. Mounting it with another key starts a new run. */
export const DryRun = ({ version_id, body, onSuccess }: DryRunProps) => {
  const problem = useSignal("");
  const resources = useSignal<readonly PlannedResource[] | undefined>(undefined);
  const feed = useMemo(() => new LogFeed(), []);
  useEffect(() => {
    let isUnmounted = false;
    const onFailed = (error: unknown): void => {
      if (!isUnmounted) problem.value = formatError(error);
    };
    const finish = async (job: string): Promise<void> => {
      const path = { templateversion: version_id, job };
      const dryRun = await call("GET /templateversions/:templateversion/dry-run/:job", { path });
      if (dryRun.status !== "succeeded")
        throw new Error(
          dryRun.error || dryRun.status === "canceled" ? "The dry run was canceled." : "The dry run failed.",
        );
      const planned = await call("GET /templateversions/:templateversion/dry-run/:job/resources", { path });
      if (isUnmounted) return;
      resources.value = planned.filter(({ workspace_transition }) => workspace_transition === "start");
      onSuccess?.();
    };
    call("POST /templateversions/:templateversion/dry-run", { path: { templateversion: version_id }, body })
      .then(({ id }) => {
        const path = `/templateversions/${version_id}/dry-run/${id}/logs`;
        if (!isUnmounted) feed.follow({ source: "dry run", path, onEnd: () => void finish(id).catch(onFailed) });
      })
      .catch(onFailed);
    return () => {
      isUnmounted = true;
      feed.end();
    };
  }, []);
  return (
    <div class="stack">
      {problem.value ? (
        <p class="banner box bad" role="alert">
          <Icon name="warn" />
          <span>{problem.value}</span>
        </p>
      ) : (
        <p role="status">
          {resources.value ? "Dry run succeeded. A workspace would have:" : "The dry run is in progress."}
        </p>
      )}
      {resources.value && (
        <ul class="panel list">
          {resources.value.map((resource) => (
            <li key={resource.id} class="item">
              <span class="line">
                <Icon name="box" />
                <span class="med">{resource.name}</span>
                <span class="dim small">{resource.type}</span>
              </span>
              {resource.agents.length > 0 && (
                <span class="sub">
                  {resource.agents
                    .map(({ name, apps }) => [name, ...apps.map(({ slug }) => slug)].join(", "))
                    .join("; ")}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      <LogView title="Dry run log" feed={feed} sources={["dry run"]} file="dry-run.log" empty="Waiting for output…" />
    </div>
  );
};
