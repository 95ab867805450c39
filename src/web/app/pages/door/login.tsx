// The sign-in page: a password with a second factor if the account has one, a passkey, or a provider.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LoginRefused } from "#schema/users/second-factor.ts";
import { getRedirectTarget } from "../../../browser/redirect-target.ts";
import { supportsPasskeys, usePasskey } from "../../../browser/webauthn.ts";
import { call, formatError, Problem } from "../../data/api.ts";
import { branding } from "../../data/branding.ts";
import { loadUserAppearance } from "../../data/looks.ts";
import { isSetUp } from "../../data/set-up.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { readTexts } from "../../parts/form-texts.ts";
import { SignInFrame, SignInProblem } from "./door.tsx";

type SecondFactorChallenge = { readonly challenge: string; readonly acceptsPasskey: boolean };
type Provider = { name: string; icon: string; url: string };
type SignInMethods = { readonly passkey: boolean; readonly providers: readonly Provider[] };

const enterApp = async (): Promise<void> => {
  // Loaded first, so that the first page is painted with the user's theme.
  await loadUserAppearance().catch(() => undefined);
  location.replace(getRedirectTarget(location.search, location.origin));
};

/** Returns the challenge of a provider sign-in that requires a second factor. It is removed from the URL immediately. */
const takeChallenge = (): SecondFactorChallenge | undefined => {
  const challenge = new URLSearchParams(location.hash.slice(1)).get("challenge");
  if (!challenge) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  return { challenge, acceptsPasskey: false };
};

const signInByPasskey = async (body: object): Promise<void> => {
  await call("POST /users/login/passkey", { body: await usePasskey("/users/login/passkey/start", body) });
  await enterApp();
};

export default function LoginPage() {
  const second = useSignal<SecondFactorChallenge | undefined>(undefined);
  const methods = useSignal<SignInMethods>({ passkey: false, providers: [] });
  const isServerSetUp = useSignal(true);
  const problem = useSignal("");
  useEffect(() => {
    second.value = takeChallenge();
    const loadMethods = async (): Promise<void> => {
      const [isDone, { oidc, passkey }] = await Promise.all([isSetUp(), call("GET /users/authmethods")]);
      isServerSetUp.value = isDone;
      methods.value = { passkey: passkey.enabled && supportsPasskeys(), providers: oidc.providers };
    };
    loadMethods().catch((error) => {
      problem.value = formatError(error);
    });
  }, []);
  /** Runs `work` and shows its error in the form. */
  const runAction = async (act: () => Promise<unknown>): Promise<void> => {
    problem.value = "";
    await act().catch((error) => {
      problem.value = formatError(error);
    });
  };
  const signIn = async (form: HTMLFormElement): Promise<void> => {
    const { email = "", password = "" } = readTexts(form);
    try {
      await call("POST /users/login", { body: { email, password } });
    } catch (error) {
      const secondFactor = error instanceof Problem ? (error.body as LoginRefused).second_factor : undefined;
      if (!secondFactor) throw error;
      second.value = {
        challenge: secondFactor.challenge,
        acceptsPasskey: secondFactor.methods.includes("passkey") && supportsPasskeys(),
      };
      return;
    }
    await enterApp();
  };
  if (second.value) {
    return (
      <SecondFactor
        second={second.value}
        problem={problem.value}
        tried={runAction}
        onBack={() => (second.value = undefined)}
      />
    );
  }
  const { passkey, providers } = methods.value;
  return (
    <SignInFrame title={`Sign in to ${branding.value.name}`}>
      {!isServerSetUp.value && (
        <p class="banner box attn">
          <span>
            This server has no users yet. Open the setup link that it printed at startup. To get a new link, restart the
            server.
          </span>
        </p>
      )}
      <SingleSubmitForm act={signIn} runAction={runAction}>
        <Field label="Email" name="email" type="email" autocomplete="username" required autoFocus />
        <Field label="Password" name="password" type="password" autocomplete="current-password" required />
        <SignInProblem text={problem.value} />
        <Button look="primary" type="submit">
          Sign in
        </Button>
      </SingleSubmitForm>
      {(passkey || providers.length > 0) && <p class="or small dim">or</p>}
      <div class="stack">
        {passkey && (
          <Button icon="key" onPress={() => runAction(() => signInByPasskey({}))}>
            Sign in with a passkey
          </Button>
        )}
        {providers.map((one) => (
          <ProviderLink key={one.url} provider={one} />
        ))}
      </div>
      <p class="small dim">
        For programs, use an API token. <a href="/swagger">API reference</a>
      </p>
    </SignInFrame>
  );
}

const ProviderLink = ({ provider: { name, icon, url } }: { provider: Provider }) => {
  const query = new URLSearchParams({ redirect: new URLSearchParams(location.search).get("redirect") ?? "/" });
  return (
    <a class="btn" href={`${url}?${query}`}>
      {icon.startsWith("data:") && <img src={icon} alt="" width="16" height="16" />}
      Sign in with {name}
    </a>
  );
};

type RunAction = (work: () => Promise<unknown>) => Promise<void>;

/** A form that can be submitted only once at a time. */
export const SingleSubmitForm = ({
  act,
  runAction,
  children,
}: {
  act: (form: HTMLFormElement) => Promise<unknown>;
  runAction: RunAction;
  children: preact.ComponentChildren;
}) => {
  const isBusy = useRef(false);
  return (
    <form
      class="stack loose"
      method="post"
      onSubmit={async (event) => {
        event.preventDefault();
        const form = event.currentTarget;
        if (isBusy.current) return;
        isBusy.current = true;
        await runAction(() => act(form)).finally(() => {
          isBusy.current = false;
        });
      }}
    >
      {children}
    </form>
  );
};

const SecondFactor = ({
  second,
  problem,
  tried,
  onBack,
}: {
  second: SecondFactorChallenge;
  problem: string;
  tried: RunAction;
  onBack: () => void;
}) => (
  <SignInFrame title="Second factor">
    <p class="mut">Enter the code from your authenticator app or a recovery code.</p>
    <SingleSubmitForm
      runAction={tried}
      act={async (form) => {
        const { code = "" } = readTexts(form);
        await call("POST /users/login/second-factor", { body: { challenge: second.challenge, code } });
        await enterApp();
      }}
    >
      <Field
        label="Code"
        name="code"
        autocomplete="one-time-code"
        autocapitalize="none"
        spellcheck={false}
        maxLength={64}
        required
        autoFocus
      />
      <SignInProblem text={problem} />
      <Button look="primary" type="submit">
        Sign in
      </Button>
    </SingleSubmitForm>
    <div class="stack">
      {second.acceptsPasskey && (
        <Button icon="key" onPress={() => tried(() => signInByPasskey({ second_factor: second.challenge }))}>
          Use a passkey
        </Button>
      )}
      <Button look="ghost" onPress={onBack}>
        Use another account
      </Button>
    </div>
  </SignInFrame>
);
