// The variables of the active version. Changing a value creates a new version with the same files.

import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVariable, TemplateVersion } from "#schema/templates/template-version.ts";
import { call, formatError } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field, Options } from "../../parts/field.tsx";
import { submits } from "../../parts/handlers.ts";
import { Inline } from "../../parts/inline/inline.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Trial } from "./trial.tsx";
import { OtherActive } from "./version-conflict.tsx";

type VariablesProps = {
  readonly template: Template;
  readonly active: TemplateVersion | undefined;
  readonly reload: () => Promise<void>;
};

export const Variables = ({ template, active: newest, reload }: VariablesProps) => {
  const changed = useSignal<Readonly<Record<string, string>>>({});
  // The user's changes stay based on this version, even if another version is promoted.
  const baseVersion = useRef(newest);
  if (Object.keys(changed.value).length === 0) baseVersion.current = newest;
  const active = baseVersion.current;
  const { state, reload: readAgain } = useResource(active && `variables ${active.id}`, () =>
    call("GET /templateversions/:templateversion/variables", { path: { templateversion: active?.id ?? "" } }),
  );
  const { data, error } = state.value;
  if (error && !data) return <Failed what="Can't load the variables" error={error} reload={readAgain} />;
  if (!data || !active) return <Skeleton lines={4} />;
  if (data.length === 0) {
    return (
      <Empty
        icon="sliders"
        title="This version has no variables"
        text="Set the values of the template's variables here, such as a region or a registry password."
      />
    );
  }
  return (
    <>
      {newest && newest.id !== active.id && <OtherActive template={template} baseVersion={active} active={newest} />}
      <Form key={active.id} template={template} active={active} variables={data} changed={changed} reload={reload} />
    </>
  );
};

type FormProps = {
  template: Template;
  active: TemplateVersion;
  variables: readonly TemplateVariable[];
  changed: Signal<Readonly<Record<string, string>>>;
  reload: () => Promise<void>;
};

const Form = ({ template, active, variables, changed, reload }: FormProps) => {
  const problem = useSignal("");
  const started = useSignal<TemplateVersion | undefined>(undefined);
  const save = async (): Promise<void> => {
    problem.value = "";
    try {
      started.value = await call("POST /organizations/:organization/templateversions", {
        path: { organization: template.organization_id },
        body: {
          file_id: active.job.file_id,
          template_id: template.id,
          message: `Other values: ${Object.keys(changed.value).join(", ")}`,
          user_variable_values: Object.entries(changed.value).map(([name, value]) => ({ name, value })),
        },
      });
    } catch (error) {
      problem.value = formatError(error);
    }
  };
  const close = (isActivated: boolean): void => {
    started.value = undefined;
    if (isActivated) changed.value = {};
    void reload();
  };
  return (
    <form class="stack" onSubmit={submits(save)}>
      <p class="mut">Values of the active version {active.name}. Changes are saved as a new version.</p>
      {variables.map((one) => (
        <Variable
          key={one.name}
          variable={one}
          value={changed.value[one.name]}
          onValue={(value) => {
            const { [one.name]: _, ...others } = changed.value;
            changed.value = one.sensitive && value === "" ? others : { ...others, [one.name]: value };
          }}
        />
      ))}
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
      <div>
        <Button look="primary" disabled={Object.keys(changed.value).length === 0} onPress={save}>
          Save as new version
        </Button>
      </div>
      {started.value && <Trial template={template} begun={started.value} onClose={close} />}
    </form>
  );
};

type VariableProps = {
  variable: TemplateVariable;
  /** The typed value; undefined if nothing was typed. */
  value: string | undefined;
  onValue: (value: string) => void;
};

const Variable = ({ variable, value, onValue }: VariableProps) => {
  const { name, description, type, sensitive, default_value, required } = variable;
  if (type === "bool") {
    return (
      <Options
        label={name}
        value={value ?? variable.value}
        choices={["true", "false"].map((one) => ({ value: one, label: one }))}
        hint={description ? <Inline text={description} /> : undefined}
        onPick={onValue}
      />
    );
  }
  const other = sensitive
    ? "Secret: never shown. Leave empty to keep the current value."
    : !required && default_value && `Default: ${default_value}.`;
  return (
    <Field
      label={name}
      type={sensitive ? "password" : type === "number" ? "number" : "text"}
      autocomplete="off"
      spellcheck={false}
      required={required && !sensitive}
      value={value ?? variable.value}
      hint={
        (description || other) && (
          <>
            <Inline text={description} /> {description && other && <br />}
            {other}
          </>
        )
      }
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
};
