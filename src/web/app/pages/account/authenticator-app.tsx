// An authenticator app: set up by QR code or by typing its key, and disabled.
import { useSignal } from "@preact/signals";
import type { TotpEnrolment } from "#schema/users/second-factor.ts";
import { call, formatError } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { submits } from "../../parts/handlers.ts";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { withConfirmation, withPasswordAndCode } from "./confirm.tsx";
import type { FactorProps } from "./factors.ts";

export const AuthenticatorApp = ({ state, proofs, changed }: FactorProps) => {
  const started = useSignal<TotpEnrolment | undefined>(undefined);
  const { totp } = state.factors;
  const disable = async (): Promise<void> => {
    if (!(await withPasswordAndCode((given) => call("DELETE /users/me/factors/totp", { body: given })))) return;
    await changed();
    showToast("Authenticator app removed");
  };
  const startEnrollment = (): Promise<boolean> =>
    withConfirmation(proofs, async () => {
      started.value = await call("POST /users/me/factors/totp");
    });
  return (
    <section class="panel" aria-labelledby="authenticator">
      <header>
        <h2 id="authenticator">Authenticator app</h2>
      </header>
      <div class="body stack">
        {totp ? (
          <p>
            On since <Time at={totp.created_at} />. You enter a code when you sign in with your password.
          </p>
        ) : (
          <p>Off. With an app, you also enter a code when you sign in with your password.</p>
        )}
        {totp ? (
          <div>
            <Button look="danger" onPress={disable}>
              Remove app
            </Button>
          </div>
        ) : started.value ? (
          <Enrollment
            begun={started.value}
            done={async (codes) => {
              started.value = undefined;
              await changed(codes);
              showToast("Authenticator app set up");
            }}
          />
        ) : (
          <div>
            <Button onPress={startEnrollment}>Set up app</Button>
          </div>
        )}
      </div>
    </section>
  );
};

const Enrollment = ({ begun, done }: { begun: TotpEnrolment; done: (codes: readonly string[]) => Promise<void> }) => {
  const problem = useSignal("");
  const send = async (form: HTMLFormElement): Promise<void> => {
    const code = String(new FormData(form).get("code"));
    problem.value = "";
    try {
      const body = { enrolment: begun.enrolment, code };
      const created = await call("POST /users/me/factors/totp/confirm", { body });
      await done(created.recovery_codes);
    } catch (error) {
      problem.value = formatError(error);
    }
  };
  return (
    <form class="stack" onSubmit={submits(send)}>
      <p>Scan this code with your app, or enter the key by hand. Then enter the code that the app shows.</p>
      <img
        class="qr"
        alt="QR code for the authenticator app"
        src={`data:image/svg+xml,${encodeURIComponent(begun.qr_svg)}`}
      />
      <output class="cmd mono" aria-label="Key for the app">
        {begun.secret.replace(/(.{4})(?=.)/g, "$1 ")}
      </output>
      <Field
        label="Code"
        name="code"
        required
        inputMode="numeric"
        autocomplete="one-time-code"
        spellcheck={false}
        ref={(input: HTMLInputElement | null) => input?.focus()}
      />
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
      <div>
        <Button look="primary" type="submit">
          Turn on
        </Button>
      </div>
    </form>
  );
};
