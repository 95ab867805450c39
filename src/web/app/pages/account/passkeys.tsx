// Passkeys: a device or a password manager signs the user in without a password.
import { createPasskey, supportsPasskeys } from "../../../browser/webauthn.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { Time } from "../../parts/time.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";
import { withConfirmation } from "./confirm.tsx";
import type { FactorProps } from "./factors.ts";

export const Passkeys = ({ state: { passkeys, acceptsPasskeys }, authMethods, onChanged }: FactorProps) => {
  const addPasskey = async (form: HTMLFormElement): Promise<void> => {
    const name = String(new FormData(form).get("name"));
    await withConfirmation(authMethods, async () => {
      const created = await createPasskey("/users/me/passkeys/start");
      const { recovery_codes } = await call("POST /users/me/passkeys", { body: { ...created, name } });
      form.reset();
      await onChanged(recovery_codes);
      showToast(`${name} added`);
    });
  };
  const confirmDelete = (id: string, name: string): void =>
    confirmAction({
      title: `Delete ${name}`,
      text: "You can't sign in with it anymore.",
      confirmLabel: "Delete passkey",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        // Not inside this dialog: confirming opens another one.
        setTimeout(() => {
          withConfirmation(authMethods, async () => {
            await call("DELETE /users/me/passkeys/:passkey", { path: { passkey: id } });
            await onChanged();
            showToast(`${name} deleted`);
          }).catch(showError);
        });
      },
    });
  return (
    <section class="panel" aria-labelledby="passkeys">
      <header>
        <h2 id="passkeys">Passkeys</h2>
      </header>
      {passkeys.length > 0 && (
        <ul class="list">
          {passkeys.map(({ id, name, last_used_at, backed_up }) => (
            <li key={id} class="item">
              <span class="med clip">{name}</span>
              <Button label={`Delete ${name}`} onPress={() => confirmDelete(id, name)}>
                Delete
              </Button>
              <span class="small mut">
                {last_used_at ? (
                  <>
                    Used <Time at={last_used_at} ago />
                  </>
                ) : (
                  "Never used"
                )}
                {backed_up && ", synced"}
              </span>
            </li>
          ))}
        </ul>
      )}
      <div class="body stack">
        {!acceptsPasskeys ? (
          <p class="mut">
            Passkeys need a host name and HTTPS. An administrator sets the address with <code>access_url</code>.
          </p>
        ) : !supportsPasskeys() ? (
          <p class="mut">This browser doesn't support passkeys.</p>
        ) : (
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault();
              addPasskey(event.currentTarget).catch(showError);
            }}
          >
            {passkeys.length === 0 && (
              <p>
                A passkey is stored on this device or in your password manager and lets you sign in without a password.
              </p>
            )}
            <Field label="Name of the passkey" name="name" required maxLength={64} placeholder="Laptop" />
            <div>
              <Button type="submit">Add passkey</Button>
            </div>
          </form>
        )}
      </div>
    </section>
  );
};
