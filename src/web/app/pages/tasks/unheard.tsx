// A notice above the tasks that notifications are off, until the user dismisses it permanently.
import { NOTICE_KINDS } from "#schema/notifications/kinds.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";

const path = { user: "me" };
/** The kinds of notification that report on a task. */
const KINDS: readonly string[] = [NOTICE_KINDS.chat_needs_you.id, NOTICE_KINDS.chat_done.id];

const read = async (): Promise<boolean> => {
  const [preferences, { task_notification_alert_dismissed }] = await Promise.all([
    call("GET /users/me/notifications/preferences"),
    call("GET /users/:user/preferences", { path }),
  ]);
  const off = preferences.filter(({ disabled }) => disabled).map(({ id }) => id);
  return !task_notification_alert_dismissed && KINDS.some((id) => off.includes(id));
};

export const Unheard = () => {
  const { state, again } = useResource("unheard tasks", read);
  if (!state.value.data) return null;
  return (
    <section class="panel" aria-labelledby="unheard">
      <div class="body stack">
        <h2 id="unheard">Some notifications are off</h2>
        <p>You won't be notified when a chat needs you or is done.</p>
        <div class="line">
          <ButtonLink href="/account/notifications">Notifications</ButtonLink>
          <Button
            look="ghost"
            onPress={async () => {
              await call("PUT /users/:user/preferences", { path, body: { task_notification_alert_dismissed: true } });
              await again();
            }}
          >
            Don't show again
          </Button>
        </div>
      </div>
    </section>
  );
};
