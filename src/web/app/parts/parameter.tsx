// One template parameter in a form, with the input that its author chose.

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { DynamicParameter } from "#schema/workspaces/dynamic-parameters.ts";
import { Area, Field, Options, Select, Switch } from "./field.tsx";
import { Inline } from "./inline/inline.tsx";

type ParameterProps = {
  readonly parameter: DynamicParameter;
  readonly value: string;
  /** The user has visited the field, so missing values are reported. */
  readonly isTouched: boolean;
  /** The reason why it cannot be changed here. */
  readonly fixedReason?: string | undefined;
  readonly onValue: (value: string) => void;
};

const MAX_RADIO_CHOICES = 6;

/** Returns the origin of a plan; undefined for a link. */
const parsePlanOrigin = (value: string): { url: string; commit: string } | undefined => {
  try {
    const { url, commit } = JSON.parse(value) as Record<string, unknown>;
    return typeof url === "string" && typeof commit === "string" ? { url, commit } : undefined;
  } catch {
    return undefined;
  }
};

type RepositoryProps = Pick<ParameterProps, "parameter" | "onValue"> & Parameters<typeof Field>[0] & { value: string };

/** The input for a repository link. A plan is shown by its origin until the user types another link. */
const RepositoryInput = ({ parameter, onValue, hint, value, ...input }: RepositoryProps) => {
  const storedOrigin = parsePlanOrigin(parameter.value.value);
  const origin = parsePlanOrigin(value);
  return (
    <Field
      {...input}
      value={origin ? "" : value}
      placeholder={storedOrigin?.url ?? "https://github.com/acme/app"}
      required={storedOrigin ? false : (input.required ?? false)}
      hint={
        storedOrigin
          ? `Set up as of commit ${storedOrigin.commit.slice(0, 10)}. Paste a link to read the configuration again.`
          : hint
      }
      onInput={(event) => onValue(event.currentTarget.value || (storedOrigin ? parameter.value.value : ""))}
    />
  );
};

const parseList = (value: string): string[] => {
  try {
    const list: unknown = JSON.parse(value);
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
};

export const Parameter = ({ parameter, value, isTouched, fixedReason, onValue }: ParameterProps) => {
  const { name, display_name, description, type, form_type, options, diagnostics, required } = parameter;
  const label = display_name || name;
  const problem = diagnostics.find(
    ({ severity, extra }) => severity === "error" && (isTouched || extra.code !== "required"),
  );
  const error = problem && [problem.summary, problem.detail].filter(Boolean).join(": ");
  const disabled = fixedReason !== undefined;
  const renderHint = (plainLinks: boolean) =>
    description || fixedReason ? (
      <>
        {description && <Inline text={description} plainLinks={plainLinks} />} {fixedReason}
      </>
    ) : undefined;
  const hint = renderHint(false);
  if (type === "bool" && options.length === 0) {
    return (
      <Switch
        label={label}
        note={error ?? renderHint(true)}
        checked={value === "true"}
        disabled={disabled}
        onSwitch={(isOn) => onValue(String(isOn))}
      />
    );
  }
  // If each option is a whole list, the user selects one option.
  const isChoiceOfLists = form_type === "radio" && options.every((one) => one.value.value.startsWith("["));
  if (type === "list(string)" && !isChoiceOfLists) {
    return (
      <ListInput
        parameter={parameter}
        value={value}
        label={label}
        hint={hint}
        error={error}
        fixedReason={fixedReason}
        onValue={onValue}
      />
    );
  }
  if (options.length > 0) {
    const choices = options.map((one) => ({ value: one.value.value, label: one.name || one.value.value }));
    const chosen = options.find((one) => one.value.value === value);
    const choiceProps = {
      label,
      value,
      onPick: onValue,
      hint: chosen?.description ? (
        <>
          {hint} {hint && <br />}
          <Inline text={chosen.description} />
        </>
      ) : (
        hint
      ),
      error,
      disabled,
    };
    if (form_type === "radio" || (form_type !== "dropdown" && choices.length <= MAX_RADIO_CHOICES))
      return <Options {...choiceProps} choices={choices} />;
    return (
      <Select {...choiceProps} choices={value === "" ? [{ value: "", label: "Choose one" }, ...choices] : choices} />
    );
  }
  const [rangeRule] = parameter.validations;
  if (form_type === "slider" && rangeRule?.validation_min != null && rangeRule.validation_max != null) {
    return (
      <Slider
        label={label}
        hint={hint}
        min={rangeRule.validation_min}
        max={rangeRule.validation_max}
        value={value}
        disabled={disabled}
        onValue={onValue}
      />
    );
  }
  const input = { label, hint, error, disabled, required, value, spellcheck: false, autocomplete: "off" as const };
  if (form_type === "repository") {
    return <RepositoryInput {...input} parameter={parameter} onValue={onValue} />;
  }
  if (form_type === "textarea") {
    return <Area {...input} onInput={(event) => onValue(event.currentTarget.value)} />;
  }
  return (
    <Field
      {...input}
      type={type === "number" ? "number" : "text"}
      // A number is an integer only if a rule requires it.
      step={type === "number" && !rangeRule ? "any" : undefined}
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
};

type SliderProps = {
  label: string;
  hint?: ComponentChildren;
  min: number;
  max: number;
  value: string;
  disabled?: boolean;
  onValue: (value: string) => void;
};

const Slider = ({ label, hint, min, max, value, disabled, onValue }: SliderProps) => {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="line">
        <input
          id={id}
          type="range"
          min={min}
          max={max}
          value={value === "" ? min : value}
          disabled={disabled}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
        <output class="num med out" for={id}>
          {value === "" ? min : value}
        </output>
      </div>
      {hint && <span class="hint">{hint}</span>}
    </div>
  );
};

type ListProps = Omit<ParameterProps, "isTouched"> & { label: string; hint?: ComponentChildren; error?: string };

/** Multiple options, or free texts with one per line. */
const ListInput = ({ parameter, value, label, hint, error, fixedReason, onValue }: ListProps) => {
  const disabled = fixedReason !== undefined;
  const chosen = parseList(value);
  if (parameter.options.length === 0) {
    const writeLines = (text: string): void => onValue(JSON.stringify(text.split("\n").filter((one) => one !== "")));
    return (
      <Area
        label={label}
        hint={hint ?? "One per line."}
        error={error}
        disabled={disabled}
        defaultValue={chosen.join("\n")}
        onInput={(event) => writeLines(event.currentTarget.value)}
      />
    );
  }
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      <div class="opts">
        {parameter.options.map((one) => (
          <label key={one.value.value}>
            <input
              type="checkbox"
              disabled={disabled}
              checked={chosen.includes(one.value.value)}
              onChange={(event) => {
                const others = chosen.filter((each) => each !== one.value.value);
                onValue(JSON.stringify(event.currentTarget.checked ? [...others, one.value.value] : others));
              }}
            />
            {one.name || one.value.value}
          </label>
        ))}
      </div>
      {error ? <span class="error">{error}</span> : hint && <span class="hint">{hint}</span>}
    </fieldset>
  );
};
