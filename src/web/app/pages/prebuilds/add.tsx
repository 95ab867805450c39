// The form for a repository whose image is built in advance: the interval of checks for commits, and the number of images to keep.
import { useSignal } from "@preact/signals";
import type { CreatedRepositoryPrebuild } from "#schema/templates/repository-prebuild.ts";
import { call } from "../../data/api.ts";
import { Field, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { writeTo } from "../../parts/handlers.ts";

const SCHEDULES = [
  { value: "0", label: "After a push only" },
  { value: "1", label: "Every hour" },
  { value: "6", label: "Every 6 hours" },
  { value: "24", label: "Every day" },
  { value: "168", label: "Every week" },
];

type AddProps = {
  readonly onCreated: (created: CreatedRepositoryPrebuild) => Promise<void>;
  readonly onClose: () => void;
};

export const AddPrebuild = ({ onCreated, onClose }: AddProps) => {
  const intervalHours = useSignal("0");
  const addPrebuild = async ({ url = "", keep = "" }: Readonly<Record<string, string>>): Promise<void> => {
    const body = { url, interval_hours: Number(intervalHours.value), keep: Number(keep) };
    await onCreated(await call("POST /repositories/prebuilds", { body }));
  };
  return (
    <FormDialog title="Add repository" submitLabel="Add repository" onClose={onClose} act={addPrebuild}>
      {(problems) => (
        <>
          <Field
            label="Repository"
            name="url"
            required
            spellcheck={false}
            placeholder="https://github.com/acme/app"
            hint="Slipway reads its default branch with your linked account."
            error={problems.url}
          />
          <Select
            label="Check for new commits"
            value={intervalHours.value}
            choices={SCHEDULES}
            onPick={writeTo(intervalHours)}
          />
          <Field
            label="Images to keep"
            name="keep"
            type="number"
            required
            min={1}
            max={20}
            value="3"
            error={problems.keep}
          />
        </>
      )}
    </FormDialog>
  );
};
