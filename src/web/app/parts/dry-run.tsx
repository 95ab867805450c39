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
  readonly worked?: () => void;
};

/** Starts when mounted. Mounting it with another key starts a new run. */
export const DryRun = ({ version_id, body, worked }: DryRunProps) => {
  const problem = useSignal("");
  const resources = useSignal<readonly PlannedResource[] | undefined>(undefined);
  const feed = useMemo(() => new LogFeed(), []);
  useEffect(() => {
    let isOver = false;
    const onFailed = (error: unknown): void => {
      if (!isOver) problem.value = formatError(error);
    };
    const finish = async (job: string): Promise<void> => {
      const path = { templateversion: version_id, job };
      const ended = await call("GET /templateversions/:templateversion/dry-run/:job", { path });
      if (ended.status !== "succeeded")
        throw new Error(
          ended.error || ended.status === "canceled" ? "The dry run was canceled." : "The dry run failed.",
        );
      const planned = await call("GET /templateversions/:templateversion/dry-run/:job/resources", { path });
      if (isOver) return;
      resources.value = planned.filter(({ workspace_transition }) => workspace_transition === "start");
      worked?.();
    };
    call("POST /templateversions/:templateversion/dry-run", { path: { templateversion: version_id }, body })
      .then(({ id }) => {
        const path = `/templateversions/${version_id}/dry-run/${id}/logs`;
        if (!isOver) feed.follow({ source: "dry run", path, ended: () => void finish(id).catch(onFailed) });
      })
      .catch(onFailed);
    return () => {
      isOver = true;
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
          {resources.value.map((one) => (
            <li key={one.id} class="item">
              <span class="line">
                <Icon name="box" />
                <span class="med">{one.name}</span>
                <span class="dim small">{one.type}</span>
              </span>
              {one.agents.length > 0 && (
                <span class="sub">
                  {one.agents.map(({ name, apps }) => [name, ...apps.map(({ slug }) => slug)].join(", ")).join("; ")}
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
