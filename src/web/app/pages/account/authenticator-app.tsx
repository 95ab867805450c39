// An authenticator app: set up by QR code or by typing its key, and disabled.
import { useSignal } from "@preact/signals";
import type { TotpEnrolment } from "#schema/users/second-factor.ts";
import { call, formatError } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { submitWith } from "../../parts/handlers.ts";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { withConfirmation, withPasswordAndCode } from "./confirm.tsx";
import type { FactorProps } from "./factors.ts";

export const AuthenticatorApp = ({ state, authMethods, onChanged }: FactorProps) => {
  const enrollment = useSignal<TotpEnrolment | undefined>(undefined);
  const { totp } = state.factors;
  const disable = async (): Promise<void> => {
    if (!(await withPasswordAndCode((answer) => call("DELETE /users/me/factors/totp", { body: answer })))) return;
    await onChanged();
    showToast("Authenticator app removed");
  };
  const startEnrollment = (): Promise<boolean> =>
    withConfirmation(authMethods, async () => {
      enrollment.value = await call("POST /users/me/factors/totp");
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
        ) : enrollment.value ? (
          <Enrollment
            enrollment={enrollment.value}
            onDone={async (codes) => {
              enrollment.value = undefined;
              await onChanged(codes);
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

const Enrollment = ({
  enrollment,
  onDone,
}: {
  enrollment: TotpEnrolment;
  onDone: (codes: readonly string[]) => Promise<void>;
}) => {
  const problem = useSignal("");
  const confirmCode = async (form: HTMLFormElement): Promise<void> => {
    const code = String(new FormData(form).get("code"));
    problem.value = "";
    try {
      const body = { enrolment: enrollment.enrolment, code };
      const created = await call("POST /users/me/factors/totp/confirm", { body });
      await onDone(created.recovery_codes);
    } catch (error) {
      problem.value = formatError(error);
    }
  };
  return (
    <form class="stack" onSubmit={submitWith(confirmCode)}>
      <p>Scan this code with your app, or enter the key by hand. Then enter the code that the app shows.</p>
      <img
        class="qr"
        alt="QR code for the authenticator app"
        src={`data:image/svg+xml,${encodeURIComponent(enrollment.qr_svg)}`}
      />
      <output class="cmd mono" aria-label="Key for the app">
        {enrollment.secret.replace(/(.{4})(?=.)/g, "$1 ")}
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
