// How long connections are kept.
import type { ConnectionRetention } from "#schema/connections.ts";
import { call } from "../../data/api.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { DaysField } from "../audit/days-field.tsx";

export const Retention = ({ kept, onClose }: { kept: ConnectionRetention; onClose: () => void }) => (
  <FormDialog
    title="How long connections are kept"
    submit="Save days"
    onClose={onClose}
    act={async ({ days = "" }) => {
      await call("PUT /connectionlog/retention", { body: { days: Number(days) } });
    }}
  >
    {(problems) => (
      <DaysField
        kept={kept.days}
        hint="0: for ever. What is older goes within minutes, for good."
        error={problems.days}
      />
    )}
  </FormDialog>
);
