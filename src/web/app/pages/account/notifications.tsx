// The user's notification settings, by kind.

import { useEffect } from "preact/hooks";
import type { NotificationTemplate } from "#schema/notifications/notification.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { enablePush, loadPushState, type PushState, pushState, unsubscribePush } from "../../data/web-push.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Switch } from "../../parts/field.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

type NotificationSettings = {
  readonly kinds: readonly NotificationTemplate[];
  readonly disabledIds: ReadonlySet<string>;
};

const loadSettings = async (): Promise<NotificationSettings> => {
  const [kinds, preferences] = await Promise.all([
    call("GET /notifications/templates/system"),
    call("GET /users/me/notifications/preferences"),
  ]);
  return { kinds, disabledIds: new Set(preferences.filter(({ disabled }) => disabled).map(({ id }) => id)) };
};

const PUSH_PROBLEMS: Readonly<Partial<Record<PushState, string>>> = {
  denied: "Your browser blocks notifications from this site. Allow them in the site settings, then try again.",
  unavailable: "This browser doesn't support push notifications, or the page was not loaded over HTTPS.",
};

/** Push notifications while no page of the app is open. The browser asks for permission only when the user presses the button. */
const BrowserNotifications = () => {
  useEffect(() => void loadPushState().catch(showError), []);
  const state = pushState.value;
  const togglePush = (isOn: boolean): void =>
    void (isOn ? enablePush() : unsubscribePush()).catch(showError).finally(() => loadPushState().catch(showError));
  return (
    <section class="panel" aria-labelledby="this-browser">
      <header>
        <h2 id="this-browser">This browser</h2>
      </header>
      <div class="body">
        <Switch
          label="Show system notifications"
          note={PUSH_PROBLEMS[state] ?? "Even when Slipway is not open."}
          checked={state === "on"}
          disabled={state !== "on" && state !== "off"}
          onSwitch={togglePush}
        />
      </div>
    </section>
  );
};

export const Notifications = () => {
  const { state, reload } = useResource("notifications", loadSettings);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your notification settings" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  const groups = [...Map.groupBy(data.kinds, ({ group }) => group)];
  const setDisabled = async (id: string, disabled: boolean): Promise<void> => {
    const body = { template_disabled_map: { [id]: disabled } };
    await call("PUT /users/me/notifications/preferences", { body }).catch(showError);
    await reload();
  };
  const sendTest = async (): Promise<void> => {
    await call("POST /notifications/test");
    showToast(
      pushState.value === "on"
        ? "Test notification sent to your inbox and your browsers"
        : "Test notification sent to your inbox",
    );
  };
  return (
    <div class="stack">
      <BrowserNotifications />
      {groups.map(([group, kinds], index) => (
        <section key={group} class="panel" aria-labelledby={`group-${index}`}>
          <header>
            <h2 id={`group-${index}`}>{group}</h2>
          </header>
          <div class="body stack">
            {kinds.map(({ id, name, method, default_method }) => (
              <Switch
                key={id}
                label={name}
                note={(method || default_method) === "smtp" ? "Inbox, and email if it is configured" : "Inbox"}
                checked={!data.disabledIds.has(id)}
                onSwitch={(isOn) => void setDisabled(id, !isOn)}
              />
            ))}
          </div>
        </section>
      ))}
      <div>
        <Button onPress={sendTest}>Send test notification</Button>
      </div>
    </div>
  );
};
