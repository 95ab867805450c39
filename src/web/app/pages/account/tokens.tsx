// API tokens: created with scopes and allowed addresses, shown once, deleted.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ApiKey } from "#schema/users/api-key.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { NewToken } from "./new-token.tsx";

const loadTokens = async () => {
  const [tokens, config, scopes] = await Promise.all([
    call("GET /users/me/keys/tokens"),
    call("GET /users/me/keys/tokens/tokenconfig"),
    call("GET /auth/scopes"),
  ]);
  return { tokens, maxHours: config.max_token_lifetime / 3.6e12, scopes: scopes.external };
};

export const Tokens = () => {
  const { state, reload } = useResource("tokens", loadTokens);
  const isCreating = useSignal(false);
  const created = useSignal<{ readonly name: string; readonly key: string } | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your tokens" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const newTokenButton = (
    <Button look="primary" icon="plus" onPress={setTo(isCreating, true)}>
      New token
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="tokens">
      <div class="head">
        <h2 id="tokens">Your tokens</h2>
        {data.tokens.length > 0 && <span class="push">{newTokenButton}</span>}
      </div>
      {created.value && <CreatedToken name={created.value.name} text={created.value.key} />}
      {data.tokens.length === 0 ? (
        <Empty icon="key" title="No tokens yet" text="Programs such as the command line sign in with a token.">
          {newTokenButton}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.tokens.map((token) => (
            <TokenRow
              key={token.id}
              token={token}
              onDeleted={async () => {
                created.value = undefined;
                await reload();
              }}
            />
          ))}
        </ul>
      )}
      {isCreating.value && (
        <NewToken
          scopes={data.scopes}
          maxHours={data.maxHours}
          onCreated={async (name, key) => {
            created.value = { name, key };
            await reload();
          }}
          onClose={setTo(isCreating, false)}
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

const TokenRow = ({ token, onDeleted }: { token: ApiKey; onDeleted: () => Promise<void> }) => {
  const confirmDelete = (): void =>
    confirmAction({
      title: `Delete ${token.token_name}`,
      text: "Programs that use it are signed out immediately.",
      confirmLabel: "Delete token",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/me/keys/:key", { path: { key: token.id } });
        await onDeleted();
        showToast(`${token.token_name} deleted`);
      },
    });
  const hasFullAccess = token.scopes.includes("all");
  return (
    <li class="item">
      <span class="med clip">{token.token_name}</span>
      <Button label={`Delete ${token.token_name}`} onPress={confirmDelete}>
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
        , expires <Time at={token.expires_at} />. Access: {hasFullAccess ? "full" : token.scopes.join(", ")}
        {token.allowed_addresses.length > 0 && `, from ${token.allowed_addresses.join(", ")}`}.
      </span>
    </li>
  );
};
