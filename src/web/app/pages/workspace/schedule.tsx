// The autostart and autostop schedule of a workspace.
import { useSignal } from "@preact/signals";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call, callServer } from "../../data/api.ts";
import { useConflictCheck } from "../../data/edit-conflicts.ts";
import * as actions from "../../data/workspace-actions.ts";
import { Button } from "../../parts/button.tsx";
import { ConflictNotice } from "../../parts/edit-conflict-notice.tsx";
import { Field, Switch } from "../../parts/field.tsx";
import { into, textInto } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";
import { DAYS, readCron, toCron } from "./cron.ts";

const HOUR_MS = 3_600_000;

export const Schedule = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => (
  <div class="split even">
    <Stop workspace={workspace} row={row} />
    <Start workspace={workspace} />
  </div>
);

/** Loads the current state from the server. */
const readNow = ({ id }: Workspace): Promise<Workspace> =>
  callServer("GET /workspaces/:workspace", { path: { workspace: id } });

const Stop = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => {
  const on = useSignal(workspace.ttl_ms !== undefined);
  const hours = useSignal(String((workspace.ttl_ms ?? 8 * HOUR_MS) / HOUR_MS));
  const typed = on.value ? Number(hours.value) * HOUR_MS : undefined;
  const conflict = useConflictCheck({
    now: workspace.ttl_ms,
    typed,
    read: async () => (await readNow(workspace)).ttl_ms,
    fill: (ttl_ms) => {
      on.value = ttl_ms !== undefined;
      if (ttl_ms !== undefined) hours.value = String(ttl_ms / HOUR_MS);
    },
  });
  const save = async (): Promise<void> => {
    if (!(await conflict.mayReplace())) return;
    const ttl_ms = typed ?? null;
    await call("PUT /workspaces/:workspace/ttl", { path: { workspace: workspace.id }, body: { ttl_ms } });
    showToast(on.value ? `Stops ${hours.value} h after each start` : "Autostop turned off");
  };
  const other = conflict.other.value;
  return (
    <section class="panel" aria-labelledby="stop">
      <header>
        <h2 id="stop">Stopping</h2>
      </header>
      <div class="body stack loose">
        <Switch label="Autostop" note="Activity extends the deadline." checked={on.value} onSwitch={into(on)} />
        {on.value && (
          <Field
            label="Hours after each start"
            type="number"
            min={0.5}
            max={720}
            step={0.5}
            value={hours.value}
            hint="Applies from the next start."
            onInput={textInto(hours)}
          />
        )}
        {other && (
          <ConflictNotice
            words={
              other.value === undefined ? "autostop is off" : `autostop is ${other.value / HOUR_MS} h after each start`
            }
            take={conflict.take}
          />
        )}
      </div>
      <footer>
        <Button look="primary" disabled={on.value && !(Number(hours.value) > 0)} onPress={save}>
          Save
        </Button>
        {row.status === "running" && row.deadline && (
          <Button onPress={() => actions.extendDeadline(row)}>Keep 1 h more</Button>
        )}
      </footer>
    </section>
  );
};

/** Formats a schedule as this form would write it, so that equivalent schedules compare equal. */
const normalizeSchedule = (schedule = ""): string => {
  const known = readCron(schedule);
  return known ? toCron(known) : schedule;
};

const formatSchedule = (schedule: string): string => {
  const known = readCron(schedule);
  if (!known) return schedule === "" ? "autostart is off" : `autostart follows the schedule ${schedule}`;
  return `autostart is at ${known.time} on ${known.days.map((day) => DAYS[day]).join(", ")} (${known.zone})`;
};

const Start = ({ workspace }: { workspace: Workspace }) => {
  const known = readCron(workspace.autostart_schedule);
  const on = useSignal(workspace.autostart_schedule !== undefined);
  const time = useSignal(known?.time ?? "09:00");
  const days = useSignal<readonly number[]>(known?.days ?? [1, 2, 3, 4, 5]);
  const zone = useSignal(known?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const schedule = on.value ? toCron({ time: time.value, days: days.value, zone: zone.value }) : "";
  const conflict = useConflictCheck({
    now: normalizeSchedule(workspace.autostart_schedule),
    typed: schedule,
    read: async () => normalizeSchedule((await readNow(workspace)).autostart_schedule),
    fill: (value) => {
      const found = readCron(value);
      on.value = value !== "";
      if (!found) return;
      time.value = found.time;
      days.value = found.days;
      zone.value = found.zone;
    },
  });
  const other = conflict.other.value;
  const save = async (): Promise<void> => {
    if (!(await conflict.mayReplace())) return;
    await call("PUT /workspaces/:workspace/autostart", { path: { workspace: workspace.id }, body: { schedule } });
    showToast(on.value ? `Starts at ${time.value}` : "Autostart turned off");
  };
  return (
    <section class="panel" aria-labelledby="start">
      <header>
        <h2 id="start">Starting</h2>
      </header>
      <div class="body stack loose">
        <Switch
          label="Autostart"
          note="The workspace is ready when you start work."
          checked={on.value}
          onSwitch={into(on)}
        />
        {on.value && (
          <>
            <Field label="Time" type="time" value={time.value} onInput={textInto(time)} />
            <fieldset class="field">
              <legend>Days</legend>
              <div class="opts">
                {DAYS.map((name, day) => (
                  <label key={name}>
                    <input
                      type="checkbox"
                      checked={days.value.includes(day)}
                      onChange={(event) => {
                        const others = days.value.filter((one) => one !== day);
                        days.value = event.currentTarget.checked ? [...others, day].sort() : others;
                      }}
                    />
                    {name}
                  </label>
                ))}
              </div>
            </fieldset>
            <Field
              label="Time zone"
              value={zone.value}
              autocomplete="off"
              spellcheck={false}
              onInput={textInto(zone)}
            />
          </>
        )}
        {other && <ConflictNotice words={formatSchedule(other.value)} take={conflict.take} />}
      </div>
      <footer>
        <Button look="primary" disabled={on.value && days.value.length === 0} onPress={save}>
          Save
        </Button>
      </footer>
    </section>
  );
};
