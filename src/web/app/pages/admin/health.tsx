// The health of the server: the results of `slipway doctor` in words, worst first. Known warnings can be dismissed.
import type { HealthReport } from "#schema/deployment/health.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import type { StateKind } from "../../data/states.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { type Check, getDocsPage, toChecks } from "./health-checks.ts";
import { Prebuilds } from "./prebuilds.tsx";

const KINDS: Readonly<Record<HealthReport["severity"], StateKind>> = {
  ok: "running",
  warning: "needs",
  error: "failed",
};
const SEVERITY_TEXTS: Readonly<Record<HealthReport["severity"], string>> = {
  ok: "All checks passed",
  warning: "Some checks need attention",
  error: "Some checks failed",
};

export const Health = () => {
  const { state, reload } = useResource("health", () => call("GET /debug/health"));
  const { data, error, loading } = state.value;
  if (error) return <Failed title="Can't load the health checks" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  const setMuted = async (name: string, isMuted: boolean): Promise<void> => {
    const { dismissed_healthchecks: mutedBefore } = await call("GET /debug/health/settings");
    const others = mutedBefore.filter((one) => one !== name);
    const dismissed_healthchecks = isMuted ? [...others, name] : others;
    await call("PUT /debug/health/settings", { body: { dismissed_healthchecks } });
    await reload();
  };
  return (
    <>
      <section class="stack" aria-labelledby="health">
        <div class="head">
          <h2 id="health">
            <State kind={KINDS[data.severity]}>{SEVERITY_TEXTS[data.severity]}</State>
          </h2>
          <span class="push">
            <Button
              icon="restart"
              disabled={loading}
              onPress={async () => {
                await call("GET /debug/health", { query: { force: true } });
                await reload();
              }}
            >
              Check again
            </Button>
          </span>
        </div>
        <p class="small mut">
          Slipway {data.coder_version}, checked <Time at={data.time} ago />. <code>slipway doctor</code> runs the same
          checks. To get help, attach a{" "}
          <a href="/api/v2/deployment/support-bundle" download>
            support bundle
          </a>
          , which contains no secrets.
        </p>
        <ul class="panel list">
          {toChecks(data).map((check) => (
            <CheckRow key={check.name} check={check} setMuted={setMuted} />
          ))}
        </ul>
      </section>
      <Prebuilds />
    </>
  );
};

const CheckRow = ({ check, setMuted }: { check: Check; setMuted: (name: string, on: boolean) => Promise<void> }) => {
  const { name, title, severity, detail, dismissed } = check;
  const docs = getDocsPage(name);
  return (
    <li class="item check">
      <State kind={dismissed ? "stopped" : KINDS[severity]}>
        <span class="med">{title.charAt(0).toUpperCase() + title.slice(1)}</span>
      </State>
      <span class="line">
        {docs && hasPage("/docs/:page") && <a href={`/docs/${docs}`}>Documentation</a>}
        {(severity !== "ok" || dismissed) && (
          <Button
            small
            look="ghost"
            label={dismissed ? `Unmute notifications: ${title}` : `Mute notifications: ${title}`}
            onPress={() => setMuted(name, !dismissed)}
          >
            {dismissed ? "Unmute notifications" : "Mute notifications"}
          </Button>
        )}
      </span>
      <span class={severity === "error" && !dismissed ? "sub t-bad" : "sub"}>{detail}</span>
    </li>
  );
};
