// Shown where chats start until a model exists: offers models found on this machine, and a link to add others.
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner } from "../../data/session.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { LocalModels, listUsableServers } from "./local-models.tsx";

/** Renders nothing once a provider exists. */
export const FirstModel = () => {
  const { state, reload } = useResource("chat models", () => call("GET /chats/models"));
  const isDemo = state.value.data?.providers.every(({ provider }) => provider === "demo") ?? false;
  if (!isDemo) return null;
  return isSiteOwner.value ? <LocalModelOffers reload={reload} /> : <DemoNotice />;
};

const LocalModelOffers = ({ reload }: { reload: () => Promise<void> }) => {
  const { state } = useResource("local models", () => call("GET /chats/providers/local"));
  const servers = listUsableServers(state.value.data?.servers ?? []);
  if (servers.length === 0) return state.value.loading && !state.value.data ? null : <DemoNotice />;
  return (
    <>
      {servers.map((server) => (
        <LocalModels key={server.base_url} server={server} reload={reload} />
      ))}
    </>
  );
};

const DemoNotice = () => (
  <div class="banner box">
    <span class="t-busy">
      <Icon name="spark" />
    </span>
    <span>
      The built-in demo answers chats until {isSiteOwner.value ? "you add" : "an administrator adds"} a model.
    </span>
    {isSiteOwner.value && (
      <span class="push">
        <ButtonLink small href="/admin/models">
          Add a model
        </ButtonLink>
      </span>
    )}
  </div>
);
