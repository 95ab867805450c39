// The settings in effect and the source of each. They are changed where the server is started; secrets are never shown.
import { useSignal } from "@preact/signals";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Switch } from "../../parts/field.tsx";
import { writeTextTo, writeTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";

const SOURCE_LABELS: Readonly<Record<string, string>> = {
  flag: "flag",
  env: "environment",
  yaml: "file",
  default: "default",
  "": "",
};

export const Settings = () => {
  const { state, reload } = useResource("settings", () => call("GET /deployment/config"));
  const search = useSignal("");
  const isOnlyChanged = useSignal(false);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the settings" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  const lowerSearch = search.value.toLowerCase();
  const matching = data.options.filter(
    ({ name, description, value_source }) =>
      (!isOnlyChanged.value || value_source !== "default") &&
      `${name} ${description}`.toLowerCase().includes(lowerSearch),
  );
  const groups = Map.groupBy(matching, ({ group }) => group.name);
  return (
    <section class="stack" aria-label="Settings">
      <div class="line wrap">
        <search class="search">
          <input
            aria-label="Find settings"
            placeholder="Name or description"
            value={search.value}
            onInput={writeTextTo(search)}
          />
        </search>
        <Switch label="Only changed settings" checked={isOnlyChanged.value} onSwitch={writeTo(isOnlyChanged)} />
      </div>
      <p class="small mut">
        Set by a flag, an environment variable or the settings file. Changes apply after a restart.
      </p>
      {matching.length === 0 && <Empty icon="search" title="No matching settings" />}
      {[...groups].map(([group, options]) => (
        <section key={group} class="panel" aria-label={group}>
          <header>
            <h2>{group}</h2>
          </header>
          <ul class="list">
            {options.map((one) => (
              <li key={one.name} class="item">
                <span class="mono clip">{one.name}</span>
                <span class="line">
                  <span class={one.value_source === "default" ? "badge" : "badge busy"} title={one.value_origin}>
                    {SOURCE_LABELS[one.value_source] ?? one.value_source}
                  </span>
                </span>
                <span class="sub">
                  <span class="mono wrap-any">{one.value === null ? "not set" : one.value || "none"}</span>
                  {one.value_source !== "default" && one.value_origin && (
                    <span class="dim"> from {one.value_origin}</span>
                  )}
                  <br />
                  <span class="small">{one.description}</span>
                </span>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </section>
  );
};
