// The field for choosing a username.
import { Field } from "../../parts/field.tsx";

const USERNAME_PATTERN = "[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*";

/** `value` and `onType` are for pages that store the input. */
export const UsernameField = (props: { readonly value?: string; readonly onType?: (text: string) => void }) => (
  <Field
    label="Username"
    name="username"
    autocomplete="username"
    required
    maxLength={32}
    autocapitalize="none"
    spellcheck={false}
    pattern={USERNAME_PATTERN}
    title="Letters, digits and hyphens"
    hint="Letters, digits and hyphens."
    value={props.value}
    onInput={({ currentTarget }) => props.onType?.(currentTarget.value)}
  />
);
