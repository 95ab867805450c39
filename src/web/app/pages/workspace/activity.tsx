// The activity of a workspace: what changed its deadline, what the server did automatically, and what it will do next.
import type { WorkspaceActivity } from "#schema/workspaces/schedule.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { useChange, useResource } from "../../data/resource.ts";
import type { IconName } from "../../icons.ts";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";

type Entry = WorkspaceActivity["entries"][number];

const REASON_TEXTS: Record<Entry["reason"], readonly [icon: IconName, words: string]> = {
  start: ["play", "Started"],
  activity: ["clock", "Extended by activity"],
  extend: ["clock", "Extended"],
  template: ["layers", "Template changed"],
  ttl_off: ["clock", "Autostop turned off"],
  autostop: ["stop", "Stopped by schedule"],
  owner_suspended: ["user", "Owner suspended"],
  autostart: ["play", "Started by schedule"],
  autostart_skipped: ["warn", "Autostart skipped"],
  failure: ["warn", "Failed"],
  dormancy: ["moon", "Became dormant"],
  wake: ["sun", "Woken"],
  autodelete: ["trash", "Deleted"],
};

const NEXT_TEXTS: Record<string, string> = {
  stop: "Stops",
  start: "Starts",
  make_dormant: "Becomes dormant",
  delete: "Will be deleted",
};

const MAX_SHOWN = 8;

export const Activity = ({ workspace }: { workspace: Workspace }) => {
  const { id, latest_build } = workspace;
  const { state, reload } = useResource(`activity ${id}`, () =>
    call("GET /workspaces/:workspace/activity", { path: { workspace: id } }),
  );
  // The workspace's stream shows when there is something new.
  useChange([latest_build.status, latest_build.deadline, workspace.dormant_at].join(" "), reload);
  const { data } = state.value;
  return (
    <section class="panel" aria-labelledby="activity">
      <header>
        <h2 id="activity">Activity</h2>
      </header>
      <div class="body">
        {!data ? (
          <Skeleton />
        ) : data.entries.length === 0 && !data.next && data.kept_by.length === 0 ? (
          <p class="dim">No activity yet.</p>
        ) : (
          <ol class="steps">
            {data.kept_by.length > 0 && (
              <li>
                <Icon name="play" />
                <span class="med">Kept running by: {data.kept_by.join(", ")}</span>
              </li>
            )}
            {data.next && (
              <li>
                <Icon name="clock" />
                <span class="med">{NEXT_TEXTS[data.next.what] ?? data.next.what}</span>
                <Time class="dim small" at={data.next.at} />
                <p class="small">{data.next.why}</p>
              </li>
            )}
            {data.entries.slice(0, MAX_SHOWN).map((entry) => (
              <li key={`${entry.at} ${entry.reason}`}>
                <Icon name={REASON_TEXTS[entry.reason][0]} />
                <span class="med">
                  {REASON_TEXTS[entry.reason][1]}
                  {entry.actor.kind === "user" && ` by ${entry.actor.name}`}
                </span>
                <Time class="dim small" at={entry.at} />
                {entry.detail && <p class="small">{entry.detail}</p>}
              </li>
            ))}
          </ol>
        )}
      </div>
    </section>
  );
};
