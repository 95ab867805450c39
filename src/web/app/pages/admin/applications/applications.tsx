// OAuth applications that may request access to users' accounts: created and changed here with their secrets, or self-registered. Deleting
// one revokes all its grants.
import { useSignal } from "@preact/signals";
import type { OAuth2App } from "#schema/oauth2/app.ts";
import { call } from "../../../data/api.ts";
import { useResource } from "../../../data/resource.ts";
import { Button } from "../../../parts/button.tsx";
import { confirmAction } from "../../../parts/dialog.tsx";
import { Empty, Failed } from "../../../parts/empty.tsx";
import { setTo, writeTo } from "../../../parts/handlers.ts";
import { Menu } from "../../../parts/menu.tsx";
import { Picture } from "../../../parts/picture.tsx";
import { Skeleton } from "../../../parts/skeleton.tsx";
import { Time } from "../../../parts/time.tsx";
import { showToast } from "../../../shell/toasts.tsx";
import { ApplicationForm } from "./form.tsx";
import { ApplicationSecrets, makeSecret, NewSecret } from "./secrets.tsx";

type CreatedApp = { readonly app: OAuth2App; readonly text: string };
/** What is open: the form (of a new or existing application), or an application's secrets. */
type Open = { readonly form: OAuth2App | undefined } | { readonly secrets: OAuth2App };

export const Applications = () => {
  const { state, reload } = useResource("applications", () => call("GET /oauth2-provider/apps"));
  const open = useSignal<Open | undefined>(undefined);
  const created = useSignal<CreatedApp | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the applications" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const remove = (app: OAuth2App): void =>
    confirmAction({
      title: `Delete ${app.name}`,
      text: "All grants are revoked, and the application's open connections are closed.",
      confirmLabel: "Delete application",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /oauth2-provider/apps/:oauth2_app", { path: { oauth2_app: app.id } });
        created.value = undefined;
        await reload();
        showToast(`${app.name} deleted`);
      },
    });
  const handleSaved = async (app: OAuth2App, isNew: boolean): Promise<void> => {
    if (isNew) created.value = { app, text: await makeSecret(app) };
    else {
      if (created.value?.app.id === app.id) created.value = { app, text: created.value.text };
      showToast(`${app.name} saved`);
    }
    await reload();
  };
  const close = (): void => {
    // The secret shown on this page may have been deleted in the dialog.
    if (open.value && "secrets" in open.value) created.value = undefined;
    open.value = undefined;
  };
  const add = (
    <Button look="primary" icon="plus" onPress={setTo(open, { form: undefined })}>
      Add application
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="applications">
      <div class="head">
        <h2 id="applications">Applications</h2>
        {data.length > 0 && <span class="push">{add}</span>}
      </div>
      {created.value && <NewSecret app={created.value.app} text={created.value.text} />}
      {data.length === 0 ? (
        <Empty
          icon="shield"
          title="No applications"
          text="Applications that request access to user accounts. Requires the setting oauth2_provider."
        >
          {add}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.map((app) => (
            <Row key={app.id} app={app} open={writeTo(open)} remove={remove} />
          ))}
        </ul>
      )}
      {open.value && <OpenDialog what={open.value} handleSaved={handleSaved} close={close} />}
    </section>
  );
};

type OpenedProps = {
  readonly what: Open;
  readonly handleSaved: (app: OAuth2App, isNew: boolean) => Promise<void>;
  readonly close: () => void;
};

const OpenDialog = ({ what, handleSaved: saved, close }: OpenedProps) =>
  "secrets" in what ? (
    <ApplicationSecrets app={what.secrets} onClose={close} />
  ) : (
    <ApplicationForm app={what.form} onSaved={(app) => saved(app, what.form === undefined)} onClose={close} />
  );

type RowProps = {
  readonly app: OAuth2App;
  readonly open: (what: Open) => void;
  readonly remove: (app: OAuth2App) => void;
};

const Row = ({ app, open, remove }: RowProps) => (
  <li class="item">
    <span class="line">
      <span class="pic">
        <Picture of={app.icon} otherwise="shield" />
      </span>
      <span class="med clip">{app.name}</span>
    </span>
    <Menu
      label={`More for ${app.name}`}
      small
      items={() => [
        { icon: "pen", label: "Edit…", act: () => open({ form: app }) },
        ...(app.token_endpoint_auth_method === "none"
          ? []
          : [{ icon: "key" as const, label: "Secrets…", act: () => open({ secrets: app }) }]),
        { icon: "trash", label: "Delete…", isDanger: true, act: () => remove(app) },
      ]}
    />
    <span class="small mut">
      {app.self_registered ? "Self-registered" : "Created here"}, redirects to {app.redirect_uris.join(", ")}, used{" "}
      <Time at={app.updated_at} />
    </span>
  </li>
);
