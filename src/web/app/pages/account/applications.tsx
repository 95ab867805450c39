// Programs that the user has granted access to, each of which can be revoked.
import type { OAuth2Grant } from "#schema/oauth2/grant.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const Applications = () => {
  const { state, reload } = useResource("grants", () =>
    call("GET /users/:user/oauth2-grants", { path: { user: "me" } }),
  );
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your applications" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const confirmRevoke = ({ id, app }: OAuth2Grant): void =>
    confirmAction({
      title: `Revoke access of ${app.name}`,
      text: "Takes effect immediately and closes the application's open connections. It can ask for access again.",
      confirmLabel: "Revoke access",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/:user/oauth2-grants/:grant", { path: { user: "me", grant: id } });
        await reload();
        showToast(`${app.name} no longer has access`);
      },
    });
  return (
    <section class="stack" aria-labelledby="applications">
      <div class="head">
        <h2 id="applications">Applications with access</h2>
      </div>
      {data.length === 0 ? (
        <Empty
          icon="shield"
          title="No applications"
          text="Applications that you authorize to act on your behalf are listed here."
        />
      ) : (
        <ul class="panel list">
          {data.map((grant) => (
            <li key={grant.id} class="item">
              <span class="med clip">{grant.app.name}</span>
              <Button label={`Revoke access of ${grant.app.name}`} onPress={() => confirmRevoke(grant)}>
                Revoke
              </Button>
              <span class="small mut">
                {grant.app.self_registered ? "Self-registered. " : ""}
                Access: {grant.scopes.includes("all") ? "full" : grant.scopes.join(", ")}; authorized{" "}
                <Time at={grant.created_at} />, used <Time at={grant.last_used} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
};
