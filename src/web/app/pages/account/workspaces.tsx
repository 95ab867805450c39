// Whether the user's connections start stopped workspaces.
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

const path = { user: "me" };

export const WorkspacePreferences = () => {
  const { state, reload } = useResource("preferences", () => call("GET /users/:user/preferences", { path }));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your preferences" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={3} />;
  const save = async (wake_on_connect: boolean): Promise<void> => {
    try {
      const { task_notification_alert_dismissed } = data;
      await call("PUT /users/:user/preferences", {
        path,
        body: { task_notification_alert_dismissed, wake_on_connect },
      });
      showToast("Preference saved");
    } catch (error) {
      showError(error);
    }
    await reload();
  };
  return (
    <section class="panel" aria-labelledby="wake-on-connect">
      <header>
        <h2 id="wake-on-connect">Wake on connect</h2>
      </header>
      <div class="body stack">
        <label class="line">
          <input
            class="switch"
            type="checkbox"
            role="switch"
            checked={data.wake_on_connect}
            onChange={({ currentTarget }) => save(currentTarget.checked)}
          />
          <span>Start a stopped workspace when I connect to it</span>
        </label>
        <p class="small mut">
          Over SSH, or through an app, port, terminal or chat. A template can turn this off for its workspaces.
        </p>
      </div>
    </section>
  );
};
