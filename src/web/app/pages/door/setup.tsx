// Server setup: creates the first user with the token in the link that the server prints.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, formatError } from "../../data/api.ts";
import { isSetUp } from "../../data/set-up.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Field, NewPassword } from "../../parts/field.tsx";
import { readTexts } from "../../parts/form-texts.ts";
import { SignInFrame, SignInProblem } from "./door.tsx";
import { SingleSubmitForm } from "./login.tsx";
import { UsernameField } from "./username-field.tsx";

const setup_token = new URLSearchParams(location.search).get("token") ?? "";

const NO_TOKEN_MESSAGE =
  "Open this page from the setup link that the server printed at startup. To get a new link, restart the server.";

export default function SetupPage() {
  const state = useSignal<"reading" | "form" | "done" | "no token">("reading");
  const problem = useSignal("");
  const runAction = async (act: () => Promise<unknown>): Promise<void> => {
    problem.value = "";
    await act().catch((error) => {
      problem.value = formatError(error);
    });
  };
  useEffect(() => {
    void runAction(async () => {
      // The form contains the element for errors.
      state.value = "form";
      if (await isSetUp()) state.value = "done";
      else if (setup_token === "") state.value = "no token";
    });
  }, []);
  const createUser = async (form: HTMLFormElement): Promise<void> => {
    const { email = "", username = "", name = "", password = "" } = readTexts(form);
    await call("POST /users/first", { body: { setup_token, email, username, name, password } });
    await call("POST /users/login", { body: { email, password } });
    location.replace("/");
  };
  if (state.value === "reading") return null;
  if (state.value !== "form") {
    return (
      <SignInFrame title="Create the first user">
        <p class="mut">{state.value === "done" ? "This server is already set up." : NO_TOKEN_MESSAGE}</p>
        {state.value === "done" && (
          <ButtonLink look="primary" href="/login">
            Sign in
          </ButtonLink>
        )}
      </SignInFrame>
    );
  }
  return (
    <SignInFrame title="Create the first user">
      <p class="mut">This account is the owner of the server: it has full access and can create other users.</p>
      <SingleSubmitForm act={createUser} runAction={runAction}>
        <Field label="Email" name="email" type="email" autocomplete="email" required autoFocus />
        <UsernameField />
        <Field label="Name" name="name" autocomplete="name" maxLength={128} hint="Optional." />
        <NewPassword label="Password" minLength={8} maxLength={128} hint="At least 8 characters." />
        <SignInProblem text={problem.value} />
        <Button look="primary" type="submit">
          Create user and sign in
        </Button>
      </SingleSubmitForm>
    </SignInFrame>
  );
}
