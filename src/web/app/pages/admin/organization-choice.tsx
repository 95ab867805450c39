// Selects the organization of a section. The choice is in the address and is offered only if there are several.
import { useLocation } from "preact-iso/router";
import { administeredOrganizations } from "../../data/session.ts";
import { Select } from "../../parts/field.tsx";

/** Returns its ID; undefined until the organizations are loaded. */
export const useOrganization = (): string | undefined => {
  const { query } = useLocation();
  const all = administeredOrganizations.value;
  return (all.find(({ name }) => name === query.organization) ?? all.find(({ is_default }) => is_default) ?? all[0])
    ?.id;
};

export const OrganizationChoice = ({ id }: { id: string | undefined }) => {
  const { path, route } = useLocation();
  const all = administeredOrganizations.value;
  if (all.length < 2) return null;
  return (
    <Select
      label="Organization"
      value={id ?? ""}
      choices={all.map((one) => ({ value: one.id, label: one.display_name || one.name }))}
      onPick={(value) => {
        const name = all.find((one) => one.id === value)?.name ?? "";
        route(`${path}?${new URLSearchParams({ organization: name })}`);
      }}
    />
  );
};
