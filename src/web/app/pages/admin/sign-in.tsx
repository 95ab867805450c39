// Sign-in providers: the configuration of each, and a test that shows which claims a provider sends and which access they would grant.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import type { OidcProvider, OidcTrial } from "#schema/users/oidc.ts";
import { call, formatError } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner } from "../../data/session.ts";
import { copy } from "../../parts/as-command.tsx";
import { Button, ButtonLink, IconButton } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Fold } from "../../parts/fold.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { hasPage } from "../../shell/page-list.ts";

export const SignIn = () => {
  const { params } = useRoute();
  const { state, reload } = useResource("sign-in providers", () => call("GET /users/oidc"));
  const { data, error } = state.value;
  if (error) return <Failed what="Can't load the sign-in providers" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  if (data.length === 0) {
    return (
      <Empty
        icon="key"
        title="No sign-in providers"
        text={
          <>
            Let users sign in with Google, Microsoft Entra ID, Keycloak or another OpenID Connect provider. Add it to
            the setting <code>oidc_providers</code> and restart the server.
          </>
        }
      >
        {hasPage("/docs/:page") && <ButtonLink href="/docs/signing-in">Documentation</ButtonLink>}
      </Empty>
    );
  }
  return (
    <>
      {data.map((one) => (
        <Provider key={one.id} provider={one} isTried={params.item === one.id} />
      ))}
    </>
  );
};

const describeAccess = ({ sign_up, link_accounts, email_domains }: OidcProvider): string =>
  [
    sign_up ? "Creates an account on first sign-in" : "Requires an account or an invitation",
    link_accounts ? "verified addresses are linked to existing accounts" : "",
    email_domains.length > 0 ? `addresses of ${email_domains.join(", ")}` : "",
  ]
    .filter(Boolean)
    .join("; ");

const Provider = ({ provider, isTried }: { provider: OidcProvider; isTried: boolean }) => {
  const { id, name, issuer, redirect_uri } = provider;
  const startTrial = async (): Promise<void> => {
    const { url } = await call("POST /users/oidc/:provider/try", { path: { provider: id } });
    location.assign(url);
  };
  return (
    <section class="panel" aria-label={name}>
      <header>
        <h2>{name}</h2>
        {isSiteOwner.value && (
          <span class="push">
            <Button small icon="play" onPress={startTrial}>
              Test sign-in
            </Button>
          </span>
        )}
      </header>
      <div class="body stack">
        <dl class="kv">
          <dt>Issuer</dt>
          <dd class="mono">{issuer}</dd>
          <dt>Redirect URI</dt>
          <dd class="line">
            <span class="mono clip">{redirect_uri}</span>
            <IconButton
              icon="copy"
              small
              label={`Copy the redirect URI of ${name}`}
              onPress={() => copy(redirect_uri)}
            />
          </dd>
          <dt>Scopes</dt>
          <dd class="mono">{provider.scopes.join(" ")}</dd>
          <dt>Who can sign in</dt>
          <dd>{describeAccess(provider)}</dd>
          <dt>Addresses</dt>
          <dd>{provider.trust_unverified_email ? "Trusted without verification" : "Verified only"}</dd>
          <dt>Groups</dt>
          <dd>
            {provider.has_mapping ? (
              <>
                Roles and memberships come from the claim <code>{provider.groups_claim}</code>
              </>
            ) : (
              "Not mapped"
            )}
          </dd>
        </dl>
        {isTried && <Trial provider={provider} />}
      </div>
    </section>
  );
};

/** Removes the provider's single-use response from the URL immediately. */
const takeQuery = (): string => {
  const query = location.hash.slice(1);
  if (query !== "") history.replaceState(history.state, "", location.pathname);
  return query;
};

const Trial = ({ provider: { id, name } }: { provider: OidcProvider }) => {
  const trial = useSignal<OidcTrial | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    const query = takeQuery();
    if (query === "") return;
    call("POST /users/oidc/:provider/try/complete", { path: { provider: id }, body: { query } })
      .then((result) => {
        trial.value = result;
      })
      .catch((error) => {
        problem.value = formatError(error);
      });
  }, []);
  if (problem.value) {
    return (
      <p class="banner box bad" role="alert">
        <span>{problem.value}</span>
      </p>
    );
  }
  return trial.value ? <Outcome trial={trial.value} name={name} /> : null;
};

const Outcome = ({ trial, name }: { trial: OidcTrial; name: string }) => (
  <div class="stack" role="status">
    <h3>
      <State kind={trial.allowed ? "running" : "failed"}>{trial.message}</State>
    </h3>
    {trial.detail && <p class="mut">{trial.detail}</p>}
    {trial.remarks.map((remark) => (
      <p key={remark} class="banner box attn">
        <span>{remark}</span>
      </p>
    ))}
    <dl class="kv">
      <dt>Site roles</dt>
      <dd>{trial.roles === null ? "Assigned here, not by the provider" : trial.roles.join(", ") || "None"}</dd>
      {trial.memberships.map(({ organization, member, roles, exists }) => (
        <>
          <dt>Organization {organization}</dt>
          <dd>
            {!exists
              ? "Does not exist here"
              : member
                ? `Member${roles.length > 0 ? ` with the roles ${roles.join(", ")}` : ""}`
                : "Not a member"}
          </dd>
        </>
      ))}
      <dt>Groups</dt>
      <dd>
        {trial.group_count === 0
          ? "None"
          : trial.groups.join(", ") +
            (trial.group_count > trial.groups.length ? ` and ${trial.group_count - trial.groups.length} more` : "")}
      </dd>
    </dl>
    <Fold summary={`Claims from ${name}`}>
      <pre class="cmd mono" tabIndex={0}>
        {JSON.stringify(trial.claims, null, 2)}
      </pre>
    </Fold>
    <p class="small mut">No changes were made. You are still signed in.</p>
  </div>
);
