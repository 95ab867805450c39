// Password, authenticator app, passkeys and recovery codes.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { loadSession, me, needsEnrollment } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { AuthenticatorApp } from "./authenticator-app.tsx";
import { withConfirmation } from "./confirm.tsx";
import { loadFactors } from "./factors.ts";
import { Passkeys } from "./passkeys.tsx";
import { Password } from "./password.tsx";

export const Security = () => {
  const { state, reload } = useResource("security", loadFactors);
  const codes = useSignal<readonly string[]>([]);
  const { data, error } = state.value;
  if (me.value && me.value.login_type !== "password") {
    return <p>You sign in with an identity provider, which manages your password, second factor and passkeys.</p>;
  }
  if (error) return <Failed title="Can't load your sign-in methods" error={error} reload={reload} />;
  if (!data || !me.value) return <Skeleton lines={6} />;
  const { factors, passkeys } = data;
  const hasFactor = factors.totp !== null || passkeys.length > 0;
  /** Reloads after a change and shows the recovery codes that it created. */
  const onChanged = async (newCodes: readonly string[] = []): Promise<void> => {
    codes.value = newCodes;
    await reload();
    // With the first factor, all other pages become available.
    if (needsEnrollment.value && newCodes.length > 0) {
      // The live lists were refused until now; this makes them reconnect.
      dispatchEvent(new Event("online"));
      await loadSession();
      needsEnrollment.value = false;
    }
  };
  const authMethods = { hasCode: hasFactor, hasPasskey: passkeys.length > 0 };
  return (
    <>
      {factors.required && !hasFactor && (
        <p class="banner box attn">
          <span>This server requires a second factor. Set up an authenticator app or a passkey to continue.</span>
        </p>
      )}
      {codes.value.length > 0 && <RecoveryCodes codes={codes.value} />}
      <AuthenticatorApp state={data} authMethods={authMethods} onChanged={onChanged} />
      <Passkeys state={data} authMethods={authMethods} onChanged={onChanged} />
      {hasFactor && (
        <section class="panel" aria-labelledby="recovery">
          <header>
            <h2 id="recovery">Recovery codes</h2>
          </header>
          <div class="body stack">
            <p>
              {factors.recovery_codes_left} of ten are left. Use one to sign in when you don't have your app or passkey.
              Each works once.
            </p>
            <div>
              <Button
                onPress={() =>
                  withConfirmation(authMethods, async () => {
                    const created = await call("POST /users/me/factors/recovery-codes");
                    await onChanged(created.recovery_codes);
                  })
                }
              >
                Generate new codes
              </Button>
            </div>
          </div>
        </section>
      )}
      {!needsEnrollment.value && <Password proofs={authMethods} />}
    </>
  );
};

const RecoveryCodes = ({ codes }: { codes: readonly string[] }) => {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), [codes]);
  return (
    <section class="panel" aria-labelledby="codes">
      <header>
        <h2 id="codes" tabIndex={-1} ref={title}>
          Your recovery codes
        </h2>
      </header>
      <div class="body stack">
        <p>Store them somewhere other than this device. They are not shown again, and earlier codes no longer work.</p>
        <Secret label="Recovery codes" text={codes.join("\n")} />
      </div>
    </section>
  );
};
