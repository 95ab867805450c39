// Enables or pauses all prebuilt workspaces. Reasons why some are not ready are among the health checks.
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { Switch } from "../../parts/field.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

export const Prebuilds = () => {
  const { state, reload } = useResource("prebuild settings", () => call("GET /prebuilds/settings"));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the prebuilt workspaces setting" error={error} reload={reload} />;
  if (!data) return null;
  const setMaintained = async (isOn: boolean): Promise<void> => {
    await call("PUT /prebuilds/settings", { body: { reconciliation_paused: !isOn } });
    await reload();
    showToast(isOn ? "Prebuilt workspaces resumed" : "Prebuilt workspaces paused");
  };
  return (
    <section class="panel" aria-labelledby="prebuilds">
      <header>
        <h2 id="prebuilds">Prebuilt workspaces</h2>
      </header>
      <div class="body">
        <Switch
          label="Maintain prebuilt workspaces"
          note={
            data.reconciliation_paused
              ? "Paused: none are created or removed. Ready workspaces can still be claimed."
              : "Off: none are created or removed."
          }
          checked={!data.reconciliation_paused}
          onSwitch={(isOn) => void setMaintained(isOn).catch(showError)}
        />
      </div>
    </section>
  );
};
