// The dialog for the connection log's retention period.
import type { ConnectionRetention } from "#schema/connections.ts";
import { call } from "../../data/api.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { DaysField } from "../audit/days-field.tsx";

export const Retention = ({ kept, onClose }: { kept: ConnectionRetention; onClose: () => void }) => (
  <FormDialog
    title="Retention"
    submit="Save retention"
    onClose={onClose}
    act={async ({ days = "" }) => {
      await call("PUT /connectionlog/retention", { body: { days: Number(days) } });
    }}
  >
    {(problems) => (
      <DaysField
        kept={kept.days}
        hint="0 keeps entries forever. Older entries are permanently deleted within minutes."
        error={problems.days}
      />
    )}
  </FormDialog>
);
