// What one wants to hear of, kind by kind.
import type { NotificationTemplate } from "#schema/notifications/notification.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Switch } from "../../parts/field.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { failed, say } from "../../shell/toasts.tsx";

type Choice = { readonly kinds: readonly NotificationTemplate[]; readonly off: ReadonlySet<string> };

const read = async (): Promise<Choice> => {
  const [kinds, preferences] = await Promise.all([
    call("GET /notifications/templates/system"),
    call("GET /users/me/notifications/preferences"),
  ]);
  return { kinds, off: new Set(preferences.filter(({ disabled }) => disabled).map(({ id }) => id)) };
};

export const Notifications = () => {
  const { state, again } = useResource("notifications", read);
  const { data, error } = state.value;
  if (error) return <Failed what="What you hear of cannot be read" error={error} again={again} />;
  if (!data) return <Skeleton lines={8} />;
  const groups = [...Map.groupBy(data.kinds, ({ group }) => group)];
  const change = async (id: string, disabled: boolean): Promise<void> => {
    const body = { template_disabled_map: { [id]: disabled } };
    await call("PUT /users/me/notifications/preferences", { body }).catch(failed);
    await again();
  };
  const test = async (): Promise<void> => {
    await call("POST /notifications/test");
    say("A test is in your inbox");
  };
  return (
    <div class="stack">
      {groups.map(([group, kinds], at) => (
        <section key={group} class="panel" aria-labelledby={`group-${at}`}>
          <header>
            <h2 id={`group-${at}`}>{group}</h2>
          </header>
          <div class="body stack">
            {kinds.map(({ id, name, method, default_method }) => (
              <Switch
                key={id}
                label={name}
                note={(method || default_method) === "smtp" ? "Inbox, and by e-mail where it is set up" : "Inbox"}
                checked={!data.off.has(id)}
                onSwitch={(on) => void change(id, !on)}
              />
            ))}
          </div>
        </section>
      ))}
      <div>
        <Button onPress={test}>Send me a test</Button>
      </div>
    </div>
  );
};
