// How the user's workspaces access other services: the git key, deploy keys of single repositories, and linked accounts.
import type { DeployKey } from "#schema/users/deploy-key.ts";
import type { ExternalAuthLink, ExternalAuthProvider } from "#schema/users/external-auth.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { LinkAccount } from "../../parts/link-account.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

const loadAccounts = async () => {
  const [key, deploy_keys, external] = await Promise.all([
    call("GET /users/me/gitsshkey"),
    call("GET /users/:user/deploy-keys", { path: { user: "me" } }),
    call("GET /external-auth"),
  ]);
  return { key, deploy_keys, ...external };
};

export const Accounts = () => {
  const { state, reload } = useResource("accounts", loadAccounts);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your key and accounts" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const confirmNewKey = (): void =>
    confirmAction({
      title: "Regenerate SSH key",
      text: "The current key stops working immediately. Replace it at every git host where you added it.",
      confirmLabel: "Regenerate key",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("PUT /users/me/gitsshkey");
        await reload();
        showToast("SSH key regenerated");
      },
    });
  return (
    <>
      <section class="panel" aria-labelledby="git-key">
        <header>
          <h2 id="git-key">Git key</h2>
          <span class="push small dim">
            created <Time at={data.key.updated_at} />
          </span>
        </header>
        <div class="body stack">
          <p>
            Add this public key to your git host so that your workspaces can reach it over SSH. Workspaces already have
            the private key.
          </p>
          <Secret label="Public key" text={data.key.public_key.trim()} />
        </div>
        <footer>
          <Button onPress={confirmNewKey}>Regenerate key</Button>
        </footer>
      </section>
      <DeployKeys keys={data.deploy_keys} reload={reload} />
      <section class="stack" aria-labelledby="linked">
        <div class="head">
          <h2 id="linked">Linked accounts</h2>
        </div>
        {data.providers.length === 0 ? (
          <p class="mut">
            No services are configured on this server. An administrator adds them with the setting{" "}
            <code>external_auth</code>.
          </p>
        ) : (
          <ul class="panel list">
            {data.providers.map((provider) => (
              <Account
                key={provider.id}
                provider={provider}
                link={data.links.find(({ provider_id }) => provider_id === provider.id)}
                reload={reload}
              />
            ))}
          </ul>
        )}
      </section>
    </>
  );
};

const DeployKeys = ({ keys, reload }: { keys: readonly DeployKey[]; reload: () => Promise<void> }) => {
  if (keys.length === 0) return null;
  const confirmRevoke = ({ id, url }: DeployKey): void =>
    confirmAction({
      title: "Revoke deploy key",
      text: `Your workspaces can no longer use it to reach ${url}. Also remove the public key from the repository's settings.`,
      confirmLabel: "Revoke key",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/:user/deploy-keys/:deploy_key", { path: { user: "me", deploy_key: id } });
        await reload();
        showToast("Deploy key revoked");
      },
    });
  return (
    <section class="stack" aria-labelledby="deploy-keys">
      <div class="head">
        <h2 id="deploy-keys">Deploy keys</h2>
      </div>
      <p class="mut">A deploy key gives your workspaces access to one private repository.</p>
      <ul class="panel list">
        {keys.map((key) => (
          <li key={key.id} class="item">
            <span class="med clip">{key.url}</span>
            <span class="line">
              {key.settings_url && (
                <a class="btn sm ghost" href={key.settings_url} target="_blank" rel="noreferrer">
                  Repository settings
                </a>
              )}
              <Button small label={`Revoke the deploy key for ${key.url}`} onPress={() => confirmRevoke(key)}>
                Revoke
              </Button>
            </span>
            <span class="sub clip mono">
              {key.public_key} · created <Time at={key.created_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
};

type AccountProps = {
  readonly provider: ExternalAuthProvider;
  readonly link: ExternalAuthLink | undefined;
  readonly reload: () => Promise<void>;
};

const Account = ({ provider: { id, display_name }, link, reload }: AccountProps) => {
  const confirmUnlink = (): void =>
    confirmAction({
      title: `Unlink ${display_name}`,
      text: "Your workspaces can no longer use the account.",
      confirmLabel: "Unlink account",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        const { token_revoked } = await call("DELETE /external-auth/:provider", { path: { provider: id } });
        await reload();
        const tokenNote = token_revoked ? "" : ". The token is still valid there: revoke it in the service's settings";
        showToast(`${display_name} unlinked${tokenNote}`);
      },
    });
  return (
    <li class="item">
      <State kind={!link ? "stopped" : link.authenticated ? "running" : "failed"}>
        <span class="med clip">{display_name}</span>
      </State>
      <span class="line">
        {!link?.authenticated && (
          <LinkAccount id={id} name={display_name} onLinked={reload}>
            Link
          </LinkAccount>
        )}
        {link && (
          <Button label={`Unlink ${display_name}`} onPress={confirmUnlink}>
            Unlink
          </Button>
        )}
      </span>
      <span class={link && !link.authenticated ? "sub t-bad" : "sub"}>
        {!link ? "Not linked" : link.authenticated ? "Linked" : `Link it again. ${link.validate_error}`}
      </span>
    </li>
  );
};
