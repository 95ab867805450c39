// What an organization is called, in a form; and reading them all again once that has changed.
import { call } from "../../data/api.ts";
import { organizations } from "../../data/session.ts";
import { Field, NameField } from "../../parts/field.tsx";

/** Reads them again, for every part of the app. */
export const readOrganizations = async (): Promise<void> => {
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
