// The settings of a template: its names, and when its workspaces stop, become dormant and are deleted.

import { useRef } from "preact/hooks";
import { WEEKDAYS, type Weekday } from "#base/schedule/weekdays.ts";
import type { PatchTemplate, Template } from "#schema/templates/template.ts";
import { call, callServer } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Area, Field } from "../../parts/field.tsx";
import { useFormProblems } from "../../parts/form-dialog.tsx";
import { submitWith } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";
import { useAgents, useDefaultAgent } from "../chat/choices.tsx";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Durations: the field, its label, and the unit of the input. */
const DURATION_FIELDS = [
  {
    name: "default_ttl_ms",
    label: "Autostop after (hours)",
    unitMs: HOUR_MS,
    hint: "Counted from each start. 0: never.",
  },
  { name: "activity_bump_ms", label: "Extend on activity by (hours)", unitMs: HOUR_MS, hint: undefined },
  { name: "failure_ttl_ms", label: "Stop after failure (hours)", unitMs: HOUR_MS, hint: "0: never." },
  { name: "time_til_dormant_ms", label: "Dormant after inactivity (days)", unitMs: DAY_MS, hint: "0: never." },
  { name: "time_til_dormant_autodelete_ms", label: "Delete after dormancy (days)", unitMs: DAY_MS, hint: "0: never." },
] as const;

const SWITCHES = [
  { name: "allow_user_autostart", label: "Users can set autostart" },
  { name: "allow_user_autostop", label: "Users can set autostop" },
  { name: "allow_user_cancel_workspace_jobs", label: "Users can cancel builds" },
  { name: "require_active_version", label: "Always use the active version" },
  { name: "home_backups", label: "Back up workspace files on a schedule" },
  { name: "allow_dotfiles", label: "Install users' dotfiles" },
] as const;

const SHARING_LEVELS = {
  owner: "Owner only",
  organization: "The organization",
  authenticated: "Signed-in users",
  public: "Anyone",
};

const WAKE_LEVELS = {
  off: "Off",
  people: "People who can start it",
  public: "Anyone who can open an app",
};

/** Returns the weekdays that are checked in this group. */
const readDays = (form: FormData, name: string): Weekday[] => WEEKDAYS.filter((day) => form.has(`${name}.${day}`));

const readBody = (form: HTMLFormElement): PatchTemplate => {
  const data = new FormData(form);
  const values = Object.fromEntries(data) as Record<string, string>;
  const { name = "", display_name = "", description = "", icon = "", deprecation_message = "" } = values;
  return {
    name,
    display_name,
    description,
    icon,
    deprecation_message,
    ...Object.fromEntries(DURATION_FIELDS.map(({ name, unitMs }) => [name, Math.round(Number(values[name]) * unitMs)])),
    autostop_requirement: { days_of_week: readDays(data, "autostop"), weeks: Number(values.weeks) },
    autostart_requirement: { days_of_week: readDays(data, "autostart") },
    trash_days: Number(values.trash_days),
    snapshots_on_stop: Number(values.snapshots_on_stop),
    wake_on_connect: values.wake_on_connect as keyof typeof WAKE_LEVELS,
    default_coding_agent: values.default_coding_agent ?? "",
    max_port_share_level: values.max_port_share_level as keyof typeof SHARING_LEVELS,
    ...Object.fromEntries(SWITCHES.map(({ name }) => [name, values[name] === "on"])),
  };
};

/** Returns only the fields that the user changed, since someone else may have changed others. */
const findChanges = (body: PatchTemplate, template: Template): PatchTemplate =>
  Object.fromEntries(
    Object.entries(body).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(template[name as keyof Template]),
    ),
  );

type DaysProps = { name: string; label: string; days: readonly string[]; hint: string };

const Days = ({ name, label, days, hint }: DaysProps) => (
  <fieldset class="field">
    <legend>{label}</legend>
    <div class="opts">
      {WEEKDAYS.map((day) => (
        <label key={day}>
          <input type="checkbox" name={`${name}.${day}`} defaultChecked={days.includes(day)} />
          {day.charAt(0).toUpperCase() + day.slice(1, 3)}
        </label>
      ))}
    </div>
    <span class="hint">{hint}</span>
  </fieldset>
);

type SettingsProps = {
  readonly template: Template;
  readonly reload: () => Promise<void>;
  readonly onDeleted: () => void;
};

/** The form is refilled when the template changes, unless it has unsaved edits: then a conflict is reported when it is saved. */
export const Settings = ({ template, ...rest }: SettingsProps) => {
  const hasEdits = useRef(false);
  const shownTemplate = useRef(template);
  if (!hasEdits.current) shownTemplate.current = template;
  const reload = async (): Promise<void> => {
    hasEdits.current = false;
    await rest.reload();
  };
  return (
    <div
      onInput={() => {
        hasEdits.current = true;
      }}
    >
      <SettingsForm key={shownTemplate.current.updated_at} {...rest} template={shownTemplate.current} reload={reload} />
    </div>
  );
};

/** Disabled, with the reason, if workspaces of the template cannot have snapshots. */
const SnapshotsField = ({ template, error }: { template: Template; error: string | undefined }) => (
  <Field
    label="Snapshots kept on stop"
    name="snapshots_on_stop"
    type="number"
    min="0"
    max="20"
    required
    readOnly={template.snapshots_unsupported !== ""}
    defaultValue={String(template.snapshots_on_stop)}
    hint={
      template.snapshots_unsupported ||
      "Each stop creates a snapshot of the workspace's files. Only the newest are kept. 0: off."
    }
    error={error}
  />
);

/** The current agent stays among the choices even if it was disabled, so that saving other settings keeps it. */
const AgentField = ({ template, error }: { template: Template; error: string | undefined }) => {
  const { default_coding_agent: currentName } = template;
  const agents = useAgents(true);
  const names = [
    ...(currentName === "" ? [] : [currentName]),
    ...agents.map(({ name }) => name).filter((name) => name !== currentName),
  ];
  const toLabel = (name: string): string => agents.find((one) => one.name === name)?.display_name ?? name;
  const defaultAgent = useDefaultAgent({ template_id: template.id });
  return (
    <div class="field">
      <label for="default-agent">Default agent</label>
      <select class="input" id="default-agent" name="default_coding_agent" aria-describedby="default-agent-note">
        <option key="" value="">
          None
        </option>
        {names.map((name) => (
          <option key={name} value={name} selected={name === currentName}>
            {toLabel(name)}
          </option>
        ))}
      </select>
      <span class={error ? "error" : "hint"} id="default-agent-note">
        {error ||
          defaultAgent?.problem ||
          "New chats and tasks in its workspaces start with this coding agent, unless the person chooses something else."}
      </span>
    </div>
  );
};

const SettingsForm = ({ template, reload, onDeleted }: SettingsProps) => {
  const problems = useFormProblems();
  const path = { template: template.id };
  /** The values that the form was filled with, and the latest known values. */
  const filledWith = useRef(template);
  const latestKnown = useRef(template);
  /** Throws once if someone else has changed an edited field to another value. Saving again overwrites it. */
  const requireNoConflict = async (body: PatchTemplate): Promise<void> => {
    const current = await callServer("GET /templates/:template", { path });
    const serialize = (value: unknown): string => JSON.stringify(value);
    const conflicts = (Object.keys(body) as (keyof PatchTemplate & keyof Template)[]).filter(
      (name) =>
        serialize(current[name]) !== serialize(latestKnown.current[name]) &&
        serialize(current[name]) !== serialize(body[name]),
    );
    latestKnown.current = current;
    if (conflicts.length === 0) return;
    const descriptions = conflicts.map((name) => `${name.replaceAll("_", " ")} is now ${serialize(current[name])}`);
    throw new Error(
      `Someone else saved this template in the meantime: ${descriptions.join(", ")}. Save again to replace it.`,
    );
  };
  const save = async (form: HTMLFormElement): Promise<void> => {
    problems.clear();
    try {
      const body = findChanges(readBody(form), filledWith.current);
      if (Object.keys(body).length > 0) {
        await requireNoConflict(body);
        filledWith.current = latestKnown.current = await call("PATCH /templates/:template", { path, body });
      }
      await reload();
      showToast("Template saved");
    } catch (error) {
      problems.show(error);
    }
  };
  const confirmDelete = (): void =>
    confirmAction({
      title: `Delete ${template.name}`,
      text: "Its versions are deleted too. You can't delete a template that still has workspaces.",
      confirmLabel: "Delete template",
      cancelLabel: "Keep it",
      isDanger: true,
      confirmText: template.name,
      act: async () => {
        await call("DELETE /templates/:template", { path });
        showToast(`${template.name} deleted`);
        onDeleted();
      },
    });
  return (
    <form ref={problems.ref} class="stack" onSubmit={submitWith(save)}>
      <Field
        label="Name"
        name="name"
        required
        maxLength={32}
        defaultValue={template.name}
        error={problems.fields.name}
      />
      <Field
        label="Display name"
        name="display_name"
        maxLength={64}
        defaultValue={template.display_name}
        error={problems.fields.display_name}
      />
      <Area
        label="Description"
        name="description"
        defaultValue={template.description}
        error={problems.fields.description}
      />
      <Field label="Icon" name="icon" defaultValue={template.icon} hint="Image URL" error={problems.fields.icon} />
      {DURATION_FIELDS.map(({ name, label, unitMs, hint }) => (
        <Field
          key={name}
          label={label}
          name={name}
          type="number"
          min="0"
          step="any"
          required
          defaultValue={String(template[name] / unitMs)}
          hint={hint}
          error={problems.fields[name]}
        />
      ))}
      <Days
        name="autostop"
        label="Required stop days"
        days={template.autostop_requirement.days_of_week}
        hint="Running workspaces stop at the start of these days (midnight UTC, or their owner's quiet hours), regardless of their own schedule. None: never."
      />
      <Field
        label="Every (weeks)"
        name="weeks"
        type="number"
        min="1"
        max="16"
        required
        defaultValue={String(template.autostop_requirement.weeks || 1)}
      />
      <Days
        name="autostart"
        label="Autostart days"
        days={template.autostart_requirement.days_of_week}
        hint="Workspaces don't autostart on other days."
      />
      <Field
        label="Keep deleted workspaces in the trash (days)"
        name="trash_days"
        type="number"
        min="0"
        max="365"
        required
        readOnly={!template.has_trash}
        defaultValue={String(template.trash_days)}
        hint={
          template.has_trash
            ? "With their files. 0: files are removed with the workspace."
            : "Not available for this template: its workspaces are removed with their files."
        }
        error={problems.fields.trash_days}
      />
      <SnapshotsField template={template} error={problems.fields.snapshots_on_stop} />
      <div class="field">
        <label for="wake-on-connect">Start stopped workspaces on connect</label>
        <select class="input" id="wake-on-connect" name="wake_on_connect" defaultValue={template.wake_on_connect}>
          {Object.entries(WAKE_LEVELS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="max-port-share">Maximum port sharing level</label>
        <select
          class="input"
          id="max-port-share"
          name="max_port_share_level"
          defaultValue={template.max_port_share_level}
        >
          {Object.entries(SHARING_LEVELS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <AgentField template={template} error={problems.fields.default_coding_agent} />
      {SWITCHES.map(({ name, label }) => (
        <label key={name} class="line">
          <input class="switch" type="checkbox" role="switch" name={name} defaultChecked={template[name]} />
          <span>{label}</span>
        </label>
      ))}
      <Area
        label="Deprecation message"
        name="deprecation_message"
        defaultValue={template.deprecation_message}
        hint="Blocks new workspaces and shows this message. Leave empty to keep the template in use."
        error={problems.fields.deprecation_message}
      />
      {problems.rest && (
        <p class="t-bad" role="alert">
          {problems.rest}
        </p>
      )}
      <div class="line">
        <Button look="primary" type="submit">
          Save template
        </Button>
        <Button look="ghost danger" onPress={confirmDelete}>
          Delete…
        </Button>
      </div>
    </form>
  );
};
