// Whether workspaces are kept ready at all, below how the server fares: what keeps some from being ready stands among the checks.
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { Switch } from "../../parts/field.tsx";
import { failed, say } from "../../shell/toasts.tsx";

export const Prebuilds = () => {
  const { state, again } = useResource("prebuild settings", () => call("GET /prebuilds/settings"));
  const { data, error } = state.value;
  if (error) return <Failed what="Whether workspaces are kept ready cannot be read" error={error} again={again} />;
  if (!data) return null;
  const turn = async (on: boolean): Promise<void> => {
    await call("PUT /prebuilds/settings", { body: { reconciliation_paused: !on } });
    await again();
    say(on ? "Workspaces are kept ready again" : "No workspace is made to be kept ready");
  };
  return (
    <section class="panel" aria-labelledby="prebuilds">
      <header>
        <h2 id="prebuilds">Workspaces that are kept ready</h2>
      </header>
      <div class="body">
        <Switch
          label="Keep as many ready as presets want"
          note={
            data.reconciliation_paused
              ? "Paused: none is made and none is removed. What is ready can still be claimed."
              : "Off: none is made and none is removed."
          }
          checked={!data.reconciliation_paused}
          onSwitch={(on) => void turn(on).catch(failed)}
        />
      </div>
    </section>
  );
};
