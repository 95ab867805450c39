// Accepting an invitation: shows who sent it, then offers a password, a passkey or an external sign-in provider.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { OpenInvitation } from "#schema/users/invitation.ts";
import { createPasskey, supportsPasskeys } from "../../../browser/webauthn.ts";
import { call, formatError } from "../../data/api.ts";
import { branding } from "../../data/branding.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Field, NewPassword } from "../../parts/field.tsx";
import { readTexts } from "../../parts/form-texts.ts";
import { writeTextTo, writeTo } from "../../parts/handlers.ts";
import { Secret } from "../../parts/secret.tsx";
import { SignInFrame, SignInProblem } from "./door.tsx";
import { SingleSubmitForm } from "./login.tsx";
import { UsernameField } from "./username-field.tsx";

/** Read once. The token stays in the address until the user has signed in, so that a reload works. */
const token = location.hash.slice(1);

const goHome = (): void => location.replace("/");

type RunAction = (work: () => Promise<unknown>) => Promise<void>;

export default function InvitePage() {
  const invitation = useSignal<OpenInvitation | undefined>(undefined);
  const codes = useSignal<readonly string[]>([]);
  const problem = useSignal("");
  const runAction: RunAction = async (act) => {
    problem.value = "";
    await act().catch((error) => {
      problem.value = formatError(error);
    });
  };
  useEffect(() => {
    void runAction(async () => {
      if (token === "") throw new Error("Open this page from an invitation link.");
      invitation.value = await call("POST /invitations/look", { body: { token } });
    });
  }, []);
  if (codes.value.length > 0) return <RecoveryCodes codes={codes.value} />;
  const openInvitation = invitation.value;
  if (!openInvitation) {
    return (
      <SignInFrame title="Invitation">
        <SignInProblem text={problem.value} />
        {problem.value !== "" && <ButtonLink href="/login">Sign in</ButtonLink>}
      </SignInFrame>
    );
  }
  return (
    <SignInFrame title={openInvitation.name ? `Welcome, ${openInvitation.name}` : "Welcome"}>
      <p class="mut">
        {openInvitation.invited_by} invited you to {openInvitation.organization_name} on {branding.value.name}.
        {openInvitation.roles.length > 0 && ` Your roles: ${openInvitation.roles.join(", ")}.`}
      </p>
      <AcceptForm
        invitation={openInvitation}
        problem={problem.value}
        runAction={runAction}
        showCodes={(newCodes) => {
          codes.value = newCodes;
        }}
      />
    </SignInFrame>
  );
}

type AcceptProps = {
  readonly invitation: OpenInvitation;
  readonly problem: string;
  readonly runAction: RunAction;
  readonly showCodes: (codes: readonly string[]) => void;
};

const AcceptForm = ({ invitation, problem, runAction, showCodes }: AcceptProps) => {
  const username = useSignal(invitation.username);
  const name = useSignal(invitation.name);
  const hasPasskeys = invitation.passkey && supportsPasskeys();
  const acceptWithPassword = async (form: HTMLFormElement): Promise<void> => {
    const { password = "" } = readTexts(form);
    await call("POST /invitations/accept", {
      body: { token, username: username.value, name: name.value, password },
    });
    goHome();
  };
  const acceptWithPasskey = async (): Promise<void> => {
    const body = { token, username: username.value };
    const created = await createPasskey("/invitations/accept/passkey/start", body);
    const passkey = { challenge: created.challenge, credential: created.credential, name: "Passkey" };
    const { recovery_codes = [] } = await call("POST /invitations/accept", {
      body: { token, username: username.value, name: name.value, passkey },
    });
    if (recovery_codes.length > 0) showCodes(recovery_codes);
    else goHome();
  };
  const acceptAtProvider = async (provider: string): Promise<void> => {
    const { url } = await call("POST /invitations/accept/oidc", { body: { token, provider } });
    location.assign(url);
  };
  return (
    <>
      {invitation.providers.length > 0 && (
        <>
          <div class="stack">
            {invitation.providers.map(({ id, name: provider, icon }) => (
              <Button key={id} onPress={() => runAction(() => acceptAtProvider(id))}>
                {icon.startsWith("data:") && <img src={icon} alt="" width="16" height="16" />}
                Continue with {provider}
              </Button>
            ))}
          </div>
          <p class="or small dim">or</p>
        </>
      )}
      <SingleSubmitForm act={acceptWithPassword} runAction={runAction}>
        <Field label="Email" name="email" type="email" autocomplete="email" value={invitation.email} readOnly />
        <Field
          label="Name"
          name="name"
          autocomplete="name"
          maxLength={128}
          hint="Optional."
          value={name.value}
          onInput={writeTextTo(name)}
        />
        <UsernameField value={username.value} onType={writeTo(username)} />
        <NewPassword label="Password" minLength={8} maxLength={128} hint="At least 8 characters." />
        <SignInProblem text={problem} />
        <Button look="primary" type="submit">
          Create account
        </Button>
      </SingleSubmitForm>
      {hasPasskeys && (
        <div class="stack">
          <p class="or small dim">or</p>
          <Button icon="key" onPress={() => runAction(acceptWithPasskey)}>
            Use a passkey instead of a password
          </Button>
        </div>
      )}
    </>
  );
};

/** Recovery codes, because a passkey can be lost with its device. */
const RecoveryCodes = ({ codes }: { codes: readonly string[] }) => (
  <SignInFrame title="Keep your recovery codes">
    <p class="mut">
      Use a recovery code to sign in if you lose your passkey. Each works once. Store them somewhere safe; they are not
      shown again.
    </p>
    <Secret label="Recovery codes" text={codes.join("\n")} />
    <Button look="primary" onPress={goHome}>
      Continue
    </Button>
  </SignInFrame>
);
