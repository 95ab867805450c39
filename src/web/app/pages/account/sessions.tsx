// The user's sessions: end one, or all except this one.
import type { Session } from "#schema/users/api-key.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const SessionList = () => {
  const { state, reload } = useResource("sessions", () => call("GET /users/me/sessions"));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your sessions" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const confirmEndOthers = (): void =>
    confirmAction({
      title: "End all other sessions",
      text: "Signs out every other browser and program. API tokens are not affected.",
      confirmLabel: "End sessions",
      cancelLabel: "Keep them",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/me/sessions");
        await reload();
        showToast("All other sessions ended");
      },
    });
  return (
    <section class="stack" aria-labelledby="sessions">
      <div class="head">
        <h2 id="sessions">Where you are signed in</h2>
        {data.length > 1 && (
          <span class="push">
            <Button onPress={confirmEndOthers}>End all other sessions</Button>
          </span>
        )}
      </div>
      <ul class="panel list">
        {data.map((one) => (
          <SessionRow key={one.id} session={one} reload={reload} />
        ))}
      </ul>
    </section>
  );
};

const formatName = ({ device: { client, os } }: Session): string =>
  [client || "Unknown program", os].filter(Boolean).join(" on ");

const SessionRow = ({ session, reload }: { session: Session; reload: () => Promise<void> }) => {
  const name = formatName(session);
  const revokeSession = async (): Promise<void> => {
    await call("DELETE /users/me/sessions/:session", { path: { session: session.id } });
    await reload();
    showToast(`${name} signed out`);
  };
  return (
    <li class="item">
      <span class="med clip" title={session.user_agent}>
        {name}
      </span>
      {session.current ? (
        <span class="badge accent">This session</span>
      ) : (
        <Button label={`End session of ${name}`} onPress={revokeSession}>
          End
        </Button>
      )}
      <span class="small mut">
        {session.ip_address || "Unknown address"}, used <Time at={session.last_used} ago />, signed in{" "}
        <Time at={session.created_at} ago />
      </span>
    </li>
  );
};
