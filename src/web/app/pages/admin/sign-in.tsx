// Sign-in providers: the configuration of each, and a test that shows which claims a provider sends and which access they would grant.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import type { OidcProvider, OidcTrial } from "#schema/users/oidc.ts";
import { call, formatError } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner } from "../../data/session.ts";
import { copyText } from "../../parts/as-command.tsx";
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
  if (error) return <Failed title="Can't load the sign-in providers" error={error} reload={reload} />;
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
        <Provider key={one.id} provider={one} isTested={params.item === one.id} />
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

const Provider = ({ provider, isTested }: { provider: OidcProvider; isTested: boolean }) => {
  const { id, name, issuer, redirect_uri } = provider;
  const startTest = async (): Promise<void> => {
    const { url } = await call("POST /users/oidc/:provider/try", { path: { provider: id } });
    location.assign(url);
  };
  return (
    <section class="panel" aria-label={name}>
      <header>
        <h2>{name}</h2>
        {isSiteOwner.value && (
          <span class="push">
            <Button small icon="play" onPress={startTest}>
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
              onPress={() => copyText(redirect_uri)}
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
        {isTested && <SignInTest provider={provider} />}
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

const SignInTest = ({ provider: { id, name } }: { provider: OidcProvider }) => {
  const result = useSignal<OidcTrial | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    const query = takeQuery();
    if (query === "") return;
    call("POST /users/oidc/:provider/try/complete", { path: { provider: id }, body: { query } })
      .then((received) => {
        result.value = received;
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
  return result.value ? <TestResult result={result.value} name={name} /> : null;
};

const TestResult = ({ result, name }: { result: OidcTrial; name: string }) => (
  <div class="stack" role="status">
    <h3>
      <State kind={result.allowed ? "running" : "failed"}>{result.message}</State>
    </h3>
    {result.detail && <p class="mut">{result.detail}</p>}
    {result.remarks.map((remark) => (
      <p key={remark} class="banner box attn">
        <span>{remark}</span>
      </p>
    ))}
    <dl class="kv">
      <dt>Site roles</dt>
      <dd>{result.roles === null ? "Assigned here, not by the provider" : result.roles.join(", ") || "None"}</dd>
      {result.memberships.map(({ organization, member, roles, exists }) => (
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
        {result.group_count === 0
          ? "None"
          : result.groups.join(", ") +
            (result.group_count > result.groups.length ? ` and ${result.group_count - result.groups.length} more` : "")}
      </dd>
    </dl>
    <Fold summary={`Claims from ${name}`}>
      <pre class="cmd mono" tabIndex={0}>
        {JSON.stringify(result.claims, null, 2)}
      </pre>
    </Fold>
    <p class="small mut">No changes were made. You are still signed in.</p>
  </div>
);
