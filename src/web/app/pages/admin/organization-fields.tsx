// Form fields for an organization's names, and the reload of all organizations after a change.
import { call } from "../../data/api.ts";
import { organizations } from "../../data/session.ts";
import { Field, NameField } from "../../parts/field.tsx";

/** Reloads the organizations for the whole app. */
export const reloadOrganizations = async (): Promise<void> => {
  organizations.value = await call("GET /organizations");
};

type FieldsProps = {
  readonly problems: Readonly<Record<string, string>>;
  readonly name?: string;
  readonly display_name?: string;
  readonly description?: string;
};

export const OrganizationFields = ({ problems, name, display_name, description }: FieldsProps) => (
  <>
    <NameField
      label="Name"
      name="name"
      maxLength={32}
      defaultValue={name}
      hint="Letters, digits and hyphens. Used in URLs and commands."
      error={problems.name}
    />
    <Field
      label="Display name"
      name="display_name"
      maxLength={64}
      defaultValue={display_name}
      error={problems.display_name}
    />
    <Field
      label="Description"
      name="description"
      maxLength={1000}
      defaultValue={description}
      error={problems.description}
    />
  </>
);
