// API tokens: created with scopes and allowed addresses, shown once, deleted.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ApiKey } from "#schema/users/api-key.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { sets } from "../../parts/handlers.ts";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { NewToken } from "./new-token.tsx";

const read = async () => {
  const [tokens, config, scopes] = await Promise.all([
    call("GET /users/me/keys/tokens"),
    call("GET /users/me/keys/tokens/tokenconfig"),
    call("GET /auth/scopes"),
  ]);
  return { tokens, maxHours: config.max_token_lifetime / 3.6e12, scopes: scopes.external };
};

export const Tokens = () => {
  const { state, reload } = useResource("tokens", read);
  const isMaking = useSignal(false);
  const created = useSignal<{ readonly name: string; readonly key: string } | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed what="Can't load your tokens" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const make = (
    <Button look="primary" icon="plus" onPress={sets(isMaking, true)}>
      New token
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="tokens">
      <div class="head">
        <h2 id="tokens">Your tokens</h2>
        {data.tokens.length > 0 && <span class="push">{make}</span>}
      </div>
      {created.value && <CreatedToken name={created.value.name} text={created.value.key} />}
      {data.tokens.length === 0 ? (
        <Empty icon="key" title="No tokens yet" text="Programs such as the command line sign in with a token.">
          {make}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.tokens.map((token) => (
            <Row
              key={token.id}
              token={token}
              deleted={async () => {
                created.value = undefined;
                await reload();
              }}
            />
          ))}
        </ul>
      )}
      {isMaking.value && (
        <NewToken
          scopes={data.scopes}
          maxHours={data.maxHours}
          onMade={async (name, key) => {
            created.value = { name, key };
            await reload();
          }}
          onClose={sets(isMaking, false)}
        />
      )}
    </section>
  );
};

const CreatedToken = ({ name, text }: { name: string; text: string }) => {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), [text]);
  return (
    <section class="panel" aria-labelledby="made">
      <header>
        <h2 id="made" tabIndex={-1} ref={title}>
          {name} created
        </h2>
      </header>
      <div class="body stack">
        <p>Copy it now. You won't be able to see it again.</p>
        <Secret label="Token" text={text} />
      </div>
    </section>
  );
};

const Row = ({ token, deleted }: { token: ApiKey; deleted: () => Promise<void> }) => {
  const remove = (): void =>
    confirmAction({
      title: `Delete ${token.token_name}`,
      text: "Programs that use it are signed out immediately.",
      yes: "Delete token",
      no: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/me/keys/:key", { path: { key: token.id } });
        await deleted();
        showToast(`${token.token_name} deleted`);
      },
    });
  const isEverything = token.scopes.includes("all");
  return (
    <li class="item">
      <span class="med clip">{token.token_name}</span>
      <Button label={`Delete ${token.token_name}`} onPress={remove}>
        Delete
      </Button>
      <span class="small mut">
        {token.last_used === token.created_at ? (
          "Never used"
        ) : (
          <>
            Used <Time at={token.last_used} ago />
          </>
        )}
        , expires <Time at={token.expires_at} />. Access: {isEverything ? "full" : token.scopes.join(", ")}
        {token.allowed_addresses.length > 0 && `, from ${token.allowed_addresses.join(", ")}`}.
      </span>
    </li>
  );
};
