// The client secrets of an application. Several can be valid at a time, so that a secret can be rotated without downtime.
import { useSignal } from "@preact/signals";
import type { OAuth2App, OAuth2Secret } from "#schema/oauth2/app.ts";
import { call } from "../../../data/api.ts";
import { useResource } from "../../../data/resource.ts";
import { Button } from "../../../parts/button.tsx";
import { confirmAction, Dialog } from "../../../parts/dialog.tsx";
import { Failed } from "../../../parts/empty.tsx";
import { Secret } from "../../../parts/secret.tsx";
import { Skeleton } from "../../../parts/skeleton.tsx";
import { Time } from "../../../parts/time.tsx";
import { showError, showToast } from "../../../shell/toasts.tsx";

/** Creates a secret; its text is shown only once. */
export const makeSecret = async (app: OAuth2App): Promise<string> => {
  const path = { oauth2_app: app.id };
  return (await call("POST /oauth2-provider/apps/:oauth2_app/secrets", { path })).client_secret_full;
};

export const NewSecret = ({ app, text }: { app: OAuth2App; text: string }) => (
  <div class="panel stack pad" role="status">
    <p>
      The secret of {app.name}, for the client id <code>{app.id}</code>. Copy it now. You won't be able to see it again.
    </p>
    <Secret label="Client secret" text={text} />
  </div>
);

export const ApplicationSecrets = ({ app, onClose }: { app: OAuth2App; onClose: () => void }) => {
  const path = { oauth2_app: app.id };
  const { state, reload } = useResource(`secrets of ${app.id}`, () =>
    call("GET /oauth2-provider/apps/:oauth2_app/secrets", { path }),
  );
  const created = useSignal("");
  const { data, error } = state.value;
  const make = async (): Promise<void> => {
    try {
      created.value = await makeSecret(app);
      await reload();
    } catch (problem) {
      showError(problem);
    }
  };
  const remove = ({ id, client_secret_truncated: end }: OAuth2Secret): void =>
    confirmAction({
      title: `Delete the secret ending in ${end}`,
      text: "Requests that use this secret are rejected immediately. Existing grants are kept.",
      confirmLabel: "Delete secret",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /oauth2-provider/apps/:oauth2_app/secrets/:oauth2_secret", {
          path: { ...path, oauth2_secret: id },
        });
        if (created.value.endsWith(end)) created.value = "";
        await reload();
        showToast(`Deleted the secret ending in ${end}`);
      },
    });
  return (
    <Dialog
      title={`Secrets of ${app.name}`}
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Close</Button>
          <Button look="primary" icon="plus" onPress={make}>
            New secret
          </Button>
        </>
      }
    >
      {created.value !== "" && <NewSecret app={app} text={created.value} />}
      {error && <Failed title="Can't load the secrets" error={error} reload={reload} />}
      {!data && !error && <Skeleton lines={2} />}
      {data?.length === 0 && <p class="mut">This application has no client secret (public client).</p>}
      {data !== undefined && data.length > 0 && (
        <ul class="panel list" aria-label={`Secrets of ${app.name}`}>
          {data.map((secret) => (
            <li key={secret.id} class="item">
              <span class="med mono clip">…{secret.client_secret_truncated}</span>
              <Button
                label={`Delete the secret ending in ${secret.client_secret_truncated}`}
                onPress={() => remove(secret)}
              >
                Delete
              </Button>
              <span class="small mut">
                Created <Time at={secret.created_at} />,{" "}
                {secret.last_used_at === null ? (
                  "never used"
                ) : (
                  <>
                    used <Time at={secret.last_used_at} />
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
};
