// Retention of all audit entries, and of sign-in and sign-out entries.
import type { AuditRetention } from "#schema/audit.ts";
import { call } from "../../data/api.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { DaysField } from "./days-field.tsx";

export const Retention = ({ kept, onClose }: { kept: AuditRetention; onClose: () => void }) => (
  <FormDialog
    title="Retention"
    submit="Save retention"
    onClose={onClose}
    act={async ({ days = "", sign_in_days = "" }) => {
      const sign_in = sign_in_days.trim() === "" ? null : Number(sign_in_days);
      await call("PUT /audit/retention", { body: { ...kept, days: Number(days), sign_in_days: sign_in } });
    }}
  >
    {(problems) => (
      <>
        <DaysField
          kept={kept.days}
          hint="0 keeps entries forever. Older entries are permanently deleted within an hour."
          error={problems.days}
        />
        <Field
          label="Days for sign-ins and sign-outs"
          name="sign_in_days"
          type="number"
          min={0}
          max={36_500}
          defaultValue={kept.sign_in_days ?? ""}
          hint="Defaults to the value above."
          error={problems.sign_in_days}
        />
      </>
    )}
  </FormDialog>
);
