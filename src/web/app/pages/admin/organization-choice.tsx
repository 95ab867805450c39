// Which organization a section is about: it stands in the address, and is asked for only where there are several.
import { useLocation } from "preact-iso/router";
import { ownOrganizations } from "../../data/session.ts";
import { Select } from "../../parts/field.tsx";

/** Its id; undefined until the organizations are known. */
export const useOrganization = (): string | undefined => {
  const { query } = useLocation();
  const all = ownOrganizations.value;
  return (all.find(({ name }) => name === query.organization) ?? all.find(({ is_default }) => is_default) ?? all[0])
    ?.id;
};

export const OrganizationChoice = ({ id }: { id: string | undefined }) => {
  const { path, route } = useLocation();
  const all = ownOrganizations.value;
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
