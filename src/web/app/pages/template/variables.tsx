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
import { submitWith } from "../../parts/handlers.ts";
import { Inline } from "../../parts/inline/inline.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ImportDialog } from "./trial.tsx";
import { OtherVersionNotice } from "./version-conflict.tsx";

type VariablesProps = {
  readonly template: Template;
  readonly active: TemplateVersion | undefined;
  readonly reload: () => Promise<void>;
};

export const Variables = ({ template, active: currentActive, reload }: VariablesProps) => {
  const changedValues = useSignal<Readonly<Record<string, string>>>({});
  // The user's changes stay based on this version, even if another version is promoted.
  const baseVersion = useRef(currentActive);
  if (Object.keys(changedValues.value).length === 0) baseVersion.current = currentActive;
  const active = baseVersion.current;
  const { state, reload: reloadVariables } = useResource(active && `variables ${active.id}`, () =>
    call("GET /templateversions/:templateversion/variables", { path: { templateversion: active?.id ?? "" } }),
  );
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the variables" error={error} reload={reloadVariables} />;
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
      {currentActive && currentActive.id !== active.id && (
        <OtherVersionNotice template={template} baseVersion={active} active={currentActive} />
      )}
      <VariablesForm
        key={active.id}
        template={template}
        active={active}
        variables={data}
        changedValues={changedValues}
        reload={reload}
      />
    </>
  );
};

type FormProps = {
  template: Template;
  active: TemplateVersion;
  variables: readonly TemplateVariable[];
  changedValues: Signal<Readonly<Record<string, string>>>;
  reload: () => Promise<void>;
};

const VariablesForm = ({ template, active, variables, changedValues, reload }: FormProps) => {
  const problem = useSignal("");
  const importing = useSignal<TemplateVersion | undefined>(undefined);
  const save = async (): Promise<void> => {
    problem.value = "";
    try {
      importing.value = await call("POST /organizations/:organization/templateversions", {
        path: { organization: template.organization_id },
        body: {
          file_id: active.job.file_id,
          template_id: template.id,
          message: `Other values: ${Object.keys(changedValues.value).join(", ")}`,
          user_variable_values: Object.entries(changedValues.value).map(([name, value]) => ({ name, value })),
        },
      });
    } catch (error) {
      problem.value = formatError(error);
    }
  };
  const close = (isPromoted: boolean): void => {
    importing.value = undefined;
    if (isPromoted) changedValues.value = {};
    void reload();
  };
  return (
    <form class="stack" onSubmit={submitWith(save)}>
      <p class="mut">Values of the active version {active.name}. Changes are saved as a new version.</p>
      {variables.map((one) => (
        <Variable
          key={one.name}
          variable={one}
          value={changedValues.value[one.name]}
          onValue={(value) => {
            const { [one.name]: _, ...others } = changedValues.value;
            changedValues.value = one.sensitive && value === "" ? others : { ...others, [one.name]: value };
          }}
        />
      ))}
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
      <div>
        <Button look="primary" disabled={Object.keys(changedValues.value).length === 0} onPress={save}>
          Save as new version
        </Button>
      </div>
      {importing.value && <ImportDialog template={template} version={importing.value} onClose={close} />}
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
  const note = sensitive
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
        (description || note) && (
          <>
            <Inline text={description} /> {description && note && <br />}
            {note}
          </>
        )
      }
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
};
