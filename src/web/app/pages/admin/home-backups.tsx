// The home backups of all workspaces: their destination, age, size and errors.
import { formatSize } from "#base/format-size.ts";
import type { HomeBackupReport } from "#schema/workspaces/home-backup.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";

export const HomeBackups = () => {
  const { state, reload } = useResource("home backups", () => call("GET /deployment/backups/homes"));
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the home backups" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={4} />;
  return (
    <section class="stack" aria-labelledby="home-backups">
      <div class="head">
        <h2 id="home-backups">Home backups</h2>
      </div>
      <p class="small mut">{describeBackups(data)}</p>
      {data.problem && data.location && (
        <p class="t-bad" role="alert">
          {data.problem}
        </p>
      )}
      {(data.location !== "" || data.backups > 0) && data.workspaces.length > 0 && (
        <ul class="panel list">
          {data.workspaces.map((one) => (
            <li key={one.workspace_id} class="item">
              <State kind={one.problem ? "failed" : "done"}>
                <a class="med clip" href={`/workspaces/${one.workspace_id}/snapshots`}>
                  {one.owner_name}/{one.workspace_name}
                </a>
              </State>
              <span class="num small mut">{formatSize(one.bytes)}</span>
              <span class={one.problem ? "sub t-bad" : "sub"}>
                {one.problem && `${one.problem} `}
                {one.backups} {one.backups === 1 ? "backup" : "backups"}
                {one.last_at && (
                  <>
                    , newest <Time at={one.last_at} />
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
};

const describeBackups = (report: HomeBackupReport): string => {
  const { location, interval_ms, engine, keep_daily, keep_weekly, backups, bytes } = report;
  if (location === "") return report.problem;
  const schedule = interval_ms === undefined ? "only on request" : `every ${formatDuration(interval_ms)}`;
  const tool = engine === "restic" ? " with restic" : "";
  const total =
    backups === 0 ? "" : ` Stored: ${backups} ${backups === 1 ? "backup" : "backups"}, ${formatSize(bytes)}.`;
  return `The files of workspaces are backed up ${schedule}${tool} to ${location}. One backup a day is kept for ${keep_daily} days, and one a week for ${keep_weekly} weeks.${total}`;
};
