// External accounts: the configured providers, and which users have linked an account.
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { copyText } from "../../parts/as-command.tsx";
import { ButtonLink, IconButton } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { hasPage } from "../../shell/page-list.ts";

export const ExternalAccounts = () => {
  const { state, reload } = useResource("external accounts", () => call("GET /deployment/external-auth"));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the external accounts" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  if (data.providers.length === 0) {
    return (
      <Empty
        icon="key"
        title="No providers"
        text={
          <>
            Users link accounts at git hosts and other services so that their workspaces can use them. The setting{" "}
            <code>external_auth</code> lists the providers; changes apply after a restart.
          </>
        }
      >
        {hasPage("/docs/:page") && <ButtonLink href="/docs/configuration">Documentation</ButtonLink>}
      </Empty>
    );
  }
  const getProviderName = (id: string): string => data.providers.find((one) => one.id === id)?.display_name || id;
  return (
    <>
      <section class="stack" aria-labelledby="providers">
        <h2 id="providers">Providers</h2>
        <ul class="panel list">
          {data.providers.map((one) => (
            <li key={one.id} class="item">
              <span class="med clip">{one.display_name || one.id}</span>
              <span class="num small mut">{one.link_count === 1 ? "1 account" : `${one.link_count} accounts`}</span>
              <span class="sub line">
                <span class="clip">
                  {one.type}
                  {one.host && `, ${one.host}`}
                  {one.device ? ", device code" : `, redirects to ${one.callback_url}`}
                </span>
                {!one.device && (
                  <IconButton
                    icon="copy"
                    small
                    label={`Copy the callback URL of ${one.id}`}
                    onPress={() => copyText(one.callback_url)}
                  />
                )}
              </span>
            </li>
          ))}
        </ul>
      </section>
      <section class="stack" aria-labelledby="links">
        <h2 id="links">Linked accounts</h2>
        {data.links.length === 0 ? (
          <p class="mut">No linked accounts yet. Users link them in Account, Git and linked accounts.</p>
        ) : (
          <ul class="panel list">
            {data.links.map((one) => (
              <li key={`${one.user_id} ${one.provider_id}`} class="item">
                <State kind={one.authenticated ? "running" : "failed"}>
                  <span class="med clip">{one.username}</span>
                </State>
                <span class="small mut">{getProviderName(one.provider_id)}</span>
                <span class="sub clip">
                  {one.validate_error ? `${one.validate_error} ` : "Valid, "}linked <Time at={one.created_at} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
    </>
  );
};
