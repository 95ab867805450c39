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
import { writeTextTo, writeTo } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";
import { DAYS, parseCron, toCron } from "./cron.ts";

const HOUR_MS = 3_600_000;

export const Schedule = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => (
  <div class="split even">
    <AutostopForm workspace={workspace} row={row} />
    <AutostartForm workspace={workspace} />
  </div>
);

/** Loads the current state from the server. */
const loadCurrent = ({ id }: Workspace): Promise<Workspace> =>
  callServer("GET /workspaces/:workspace", { path: { workspace: id } });

const AutostopForm = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => {
  const isOn = useSignal(workspace.ttl_ms !== undefined);
  const hours = useSignal(String((workspace.ttl_ms ?? 8 * HOUR_MS) / HOUR_MS));
  const typedTtlMs = isOn.value ? Number(hours.value) * HOUR_MS : undefined;
  const conflict = useConflictCheck({
    current: workspace.ttl_ms,
    typed: typedTtlMs,
    read: async () => (await loadCurrent(workspace)).ttl_ms,
    fill: (ttl_ms) => {
      isOn.value = ttl_ms !== undefined;
      if (ttl_ms !== undefined) hours.value = String(ttl_ms / HOUR_MS);
    },
  });
  const save = async (): Promise<void> => {
    if (!(await conflict.mayReplace())) return;
    const ttl_ms = typedTtlMs ?? null;
    await call("PUT /workspaces/:workspace/ttl", { path: { workspace: workspace.id }, body: { ttl_ms } });
    showToast(isOn.value ? `Stops ${hours.value} h after each start` : "Autostop turned off");
  };
  const otherEdit = conflict.other.value;
  return (
    <section class="panel" aria-labelledby="stop">
      <header>
        <h2 id="stop">Stopping</h2>
      </header>
      <div class="body stack loose">
        <Switch label="Autostop" note="Activity extends the deadline." checked={isOn.value} onSwitch={writeTo(isOn)} />
        {isOn.value && (
          <Field
            label="Hours after each start"
            type="number"
            min={0.5}
            max={720}
            step={0.5}
            value={hours.value}
            hint="Applies from the next start."
            onInput={writeTextTo(hours)}
          />
        )}
        {otherEdit && (
          <ConflictNotice
            savedValue={
              otherEdit.value === undefined
                ? "autostop is off"
                : `autostop is ${otherEdit.value / HOUR_MS} h after each start`
            }
            onDiscard={conflict.take}
          />
        )}
      </div>
      <footer>
        <Button look="primary" disabled={isOn.value && !(Number(hours.value) > 0)} onPress={save}>
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
  const parsed = parseCron(schedule);
  return parsed ? toCron(parsed) : schedule;
};

const formatSchedule = (schedule: string): string => {
  const parsed = parseCron(schedule);
  if (!parsed) return schedule === "" ? "autostart is off" : `autostart follows the schedule ${schedule}`;
  return `autostart is at ${parsed.time} on ${parsed.days.map((day) => DAYS[day]).join(", ")} (${parsed.zone})`;
};

const AutostartForm = ({ workspace }: { workspace: Workspace }) => {
  const initial = parseCron(workspace.autostart_schedule);
  const isOn = useSignal(workspace.autostart_schedule !== undefined);
  const time = useSignal(initial?.time ?? "09:00");
  const days = useSignal<readonly number[]>(initial?.days ?? [1, 2, 3, 4, 5]);
  const zone = useSignal(initial?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const schedule = isOn.value ? toCron({ time: time.value, days: days.value, zone: zone.value }) : "";
  const conflict = useConflictCheck({
    current: normalizeSchedule(workspace.autostart_schedule),
    typed: schedule,
    read: async () => normalizeSchedule((await loadCurrent(workspace)).autostart_schedule),
    fill: (value) => {
      const parsed = parseCron(value);
      isOn.value = value !== "";
      if (!parsed) return;
      time.value = parsed.time;
      days.value = parsed.days;
      zone.value = parsed.zone;
    },
  });
  const otherEdit = conflict.other.value;
  const save = async (): Promise<void> => {
    if (!(await conflict.mayReplace())) return;
    await call("PUT /workspaces/:workspace/autostart", { path: { workspace: workspace.id }, body: { schedule } });
    showToast(isOn.value ? `Starts at ${time.value}` : "Autostart turned off");
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
          checked={isOn.value}
          onSwitch={writeTo(isOn)}
        />
        {isOn.value && (
          <>
            <Field label="Time" type="time" value={time.value} onInput={writeTextTo(time)} />
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
              onInput={writeTextTo(zone)}
            />
          </>
        )}
        {otherEdit && <ConflictNotice savedValue={formatSchedule(otherEdit.value)} onDiscard={conflict.take} />}
      </div>
      <footer>
        <Button look="primary" disabled={isOn.value && days.value.length === 0} onPress={save}>
          Save
        </Button>
      </footer>
    </section>
  );
};
