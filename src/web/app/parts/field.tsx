// A form field with its label, hint and error.
import { type ComponentChildren, createContext, type InputHTMLAttributes, type TextareaHTMLAttributes } from "preact";
import { useContext, useId } from "preact/hooks";

type FieldProps = Omit<InputHTMLAttributes<HTMLInputElement>, "label" | "role" | "type" | "icon"> & {
  readonly type?: "text" | "email" | "password" | "number" | "search" | "url" | "time" | "date";
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly error?: string;
  /** ID of a datalist. */
  readonly list?: string;
};

/** Errors of the form around a field, by the name of the field. */
export const FieldProblems = createContext<Readonly<Record<string, string>>>({});

const useProblem = (name: unknown, error: string | undefined): string | undefined =>
  useContext(FieldProblems)[typeof name === "string" ? name : ""] ?? error;

const Notes = ({ id, hint, error }: { id: string; hint?: ComponentChildren; error?: string }) => (
  <>
    {hint && !error && (
      <span class="hint" id={`${id}-n`}>
        {hint}
      </span>
    )}
    {error && (
      <span class="error" id={`${id}-n`}>
        {error}
      </span>
    )}
  </>
);

export const Field = ({ label, hint, error: ownError, ...input }: FieldProps) => {
  const id = useId();
  const error = useProblem(input.name, ownError);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        class="input"
        id={id}
        aria-invalid={error ? "true" : undefined}
        aria-describedby={hint || error ? `${id}-n` : undefined}
        {...(input as InputHTMLAttributes<HTMLInputElement>)}
      />
      <Notes id={id} hint={hint} error={error} />
    </div>
  );
};

/** A field for machine-readable names, without autocompletion, correction or capitalization. */
export const NameField = (field: FieldProps) => (
  <Field required autocomplete="off" autocapitalize="none" spellcheck={false} {...field} />
);

export const NewPassword = (field: FieldProps) => (
  <Field name="password" type="password" required autocomplete="new-password" {...field} />
);

type AreaProps = Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "label" | "role"> & {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly error?: string;
};

export const Area = ({ label, hint, error: ownError, ...input }: AreaProps) => {
  const id = useId();
  const error = useProblem(input.name, ownError);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        class="input"
        id={id}
        rows={3}
        aria-invalid={error ? "true" : undefined}
        aria-describedby={hint || error ? `${id}-n` : undefined}
        {...input}
      />
      <Notes id={id} hint={hint} error={error} />
    </div>
  );
};

type Choice = { readonly value: string; readonly label: string };
type SelectProps = {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onPick: (value: string) => unknown;
  readonly hint?: ComponentChildren;
  readonly error?: string;
  readonly disabled?: boolean;
};

export const Select = ({ label, value, choices, onPick, hint, error, disabled }: SelectProps) => {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        class="input"
        id={id}
        disabled={disabled}
        value={value}
        onChange={(event) => onPick(event.currentTarget.value)}
      >
        {choices.map((one) => (
          <option key={one.value} value={one.value}>
            {one.label}
          </option>
        ))}
      </select>
      <Notes id={id} hint={hint} error={error} />
    </div>
  );
};

/** A few choices side by side. */
export const Options = ({ label, value, choices, onPick, hint, error, disabled }: SelectProps) => {
  const name = useId();
  return (
    <fieldset class="field" aria-describedby={hint || error ? `${name}-n` : undefined}>
      <legend>{label}</legend>
      <div class="opts">
        {choices.map((one) => (
          <label key={one.value}>
            <input
              type="radio"
              name={name}
              disabled={disabled}
              checked={one.value === value}
              onChange={() => onPick(one.value)}
            />
            {one.label}
          </label>
        ))}
      </div>
      <Notes id={name} hint={hint} error={error} />
    </fieldset>
  );
};

type SwitchProps = {
  label: string;
  note?: ComponentChildren;
  checked: boolean;
  disabled?: boolean;
  onSwitch: (isOn: boolean) => unknown;
};

export const Switch = ({ label, note, checked, disabled, onSwitch }: SwitchProps) => (
  <label class="line">
    <input
      class="switch"
      type="checkbox"
      role="switch"
      checked={checked}
      disabled={disabled}
      onChange={(event) => onSwitch(event.currentTarget.checked)}
    />
    <span class="wrapped">
      <span class="med">{label}</span>
      {note && (
        <>
          <br />
          <span class="small mut">{note}</span>
        </>
      )}
    </span>
  </label>
);
