// The field for the retention period of a log, in days.
import { Field } from "../../parts/field.tsx";

type DaysFieldProps = { readonly days: number; readonly hint: string; readonly error: string | undefined };

export const DaysField = ({ days, hint, error }: DaysFieldProps) => (
  <Field
    label="Days"
    name="days"
    type="number"
    min={0}
    max={36_500}
    required
    defaultValue={days}
    hint={hint}
    error={error}
  />
);
