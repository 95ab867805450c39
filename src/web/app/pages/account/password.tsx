// The form for a new password, which the server checks as the user types.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, formatError } from "../../data/api.ts";
import { me } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Field, NewPassword } from "../../parts/field.tsx";
import { submitWith } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";
import { type AuthMethods, withConfirmation } from "./confirm.tsx";

/** Debounce delay for checks while the user types. */
const DEBOUNCE_MS = 300;

/** Returns the server's objection to a password. Answers for older input are ignored. */
const usePasswordCheck = () => {
  const verdict = useSignal<{ readonly isGood: boolean; readonly details: string } | undefined>(undefined);
  const latestPassword = useRef("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const checkPassword = (password: string): void => {
    latestPassword.current = password;
    clearTimeout(timer.current);
    verdict.value = undefined;
    if (password === "") return;
    timer.current = setTimeout(() => {
      call("POST /users/validate-password", { body: { password } }).then(
        ({ valid, details }) => {
          if (latestPassword.current === password) verdict.value = { isGood: valid, details };
        },
        // The password is checked again when the form is submitted.
        () => {},
      );
    }, DEBOUNCE_MS);
  };
  return { verdict, checkPassword };
};

export const Password = ({ proofs }: { proofs: AuthMethods }) => {
  const { verdict, checkPassword } = usePasswordCheck();
  const problem = useSignal("");
  const save = async (form: HTMLFormElement): Promise<void> => {
    const { old_password = "", password = "" } = Object.fromEntries(new FormData(form)) as Record<string, string>;
    problem.value = "";
    try {
      const changePassword = () =>
        call("PUT /users/:user/password", { path: { user: "me" }, body: { old_password, password } });
      if (!(await withConfirmation(proofs, changePassword))) return;
      form.reset();
      checkPassword("");
      showToast("Password changed. Other sessions and tokens were revoked.");
    } catch (error) {
      problem.value = formatError(error);
    }
  };
  return (
    <section class="panel" aria-labelledby="password">
      <header>
        <h2 id="password">Password</h2>
      </header>
      <form class="body stack" onSubmit={submitWith(save)}>
        <input type="hidden" name="username" autocomplete="username" value={me.value?.email ?? ""} />
        <Field label="Current password" name="old_password" type="password" required autocomplete="current-password" />
        <NewPassword
          label="New password"
          hint={verdict.value?.isGood ? "Strong enough." : "Revokes all other sessions and all tokens."}
          error={verdict.value?.isGood === false ? verdict.value.details : undefined}
          onInput={(event) => checkPassword(event.currentTarget.value)}
        />
        {problem.value && (
          <p class="t-bad" role="alert">
            {problem.value}
          </p>
        )}
        <div>
          <Button type="submit">Change password</Button>
        </div>
      </form>
    </section>
  );
};
