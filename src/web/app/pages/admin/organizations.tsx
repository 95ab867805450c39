// Organizations: the list, and one organization with its members (organization.tsx).
import { useSignal } from "@preact/signals";
import { useRoute } from "preact-iso/router";
import { call } from "../../data/api.ts";
import { isSiteOwner, organizations } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";
import { OrganizationPage } from "./organization.tsx";
import { OrganizationFields, reloadOrganizations } from "./organization-fields.tsx";

export const Organizations = () => {
  const { params } = useRoute();
  const isAdding = useSignal(false);
  const all = organizations.value;
  if (params.item !== undefined) {
    const open = all.find(({ name }) => name === params.item);
    if (open) return <OrganizationPage key={open.id} organization={open} />;
    return <Empty icon="search" title="Organization not found" text="It was renamed or deleted." />;
  }
  return (
    <section class="stack" aria-labelledby="organizations">
      <div class="head">
        <h2 id="organizations">Organizations</h2>
        {isSiteOwner.value && (
          <span class="push">
            <Button look="primary" icon="plus" onPress={setTo(isAdding, true)}>
              Add organization
            </Button>
          </span>
        )}
      </div>
      <ul class="panel list">
        {all.map((one) => (
          <li key={one.id} class="item">
            <a class="med clip" href={`/admin/organizations/${encodeURIComponent(one.name)}`}>
              {one.display_name || one.name}
            </a>
            <span class="line">{one.is_default && <span class="badge">Default</span>}</span>
            <span class="sub clip">{one.description || one.name}</span>
          </li>
        ))}
      </ul>
      <p class="small mut">An organization owns templates and workspaces that its members share.</p>
      {isAdding.value && (
        <FormDialog
          title="Add organization"
          submitLabel="Add organization"
          onClose={setTo(isAdding, false)}
          act={async ({ name = "", display_name = "", description = "" }) => {
            await call("POST /organizations", { body: { name, display_name, description } });
            await reloadOrganizations();
            showToast(`${display_name || name} added`);
          }}
        >
          {(problems) => <OrganizationFields problems={problems} />}
        </FormDialog>
      )}
    </section>
  );
};
