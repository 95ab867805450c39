// Passkeys: a device or a password manager signs the user in without a password.
import { makePasskey, supportsPasskeys } from "../../../browser/webauthn.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { Time } from "../../parts/time.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";
import { withConfirmation } from "./confirm.tsx";
import type { FactorProps } from "./factors.ts";

export const Passkeys = ({ state: { passkeys, takesPasskeys }, proofs, changed }: FactorProps) => {
  const add = async (form: HTMLFormElement): Promise<void> => {
    const name = String(new FormData(form).get("name"));
    await withConfirmation(proofs, async () => {
      const given = await makePasskey("/users/me/passkeys/start");
      const { recovery_codes } = await call("POST /users/me/passkeys", { body: { ...given, name } });
      form.reset();
      await changed(recovery_codes);
      showToast(`${name} added`);
    });
  };
  const remove = (id: string, name: string): void =>
    confirmAction({
      title: `Delete ${name}`,
      text: "You can't sign in with it anymore.",
      yes: "Delete passkey",
      no: "Keep it",
      isDanger: true,
      act: async () => {
        // Not inside this dialog: confirming opens another one.
        setTimeout(() => {
          withConfirmation(proofs, async () => {
            await call("DELETE /users/me/passkeys/:passkey", { path: { passkey: id } });
            await changed();
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
              <Button label={`Delete ${name}`} onPress={() => remove(id, name)}>
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
        {!takesPasskeys ? (
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
              add(event.currentTarget).catch(showError);
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
