// Quiet hours: the time of day at which a stop that a template requires disturbs the user least.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { QuietHours as Chosen } from "#schema/users/quiet-hours.ts";
import { call, formatError, Problem } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { writeTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

const path = { user: "me" };

export const QuietHours = () => {
  const { state, reload } = useResource("quiet hours", () => call("GET /users/:user/quiet-hours", { path }));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your quiet hours" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={4} />;
  return (
    <section class="panel" aria-labelledby="quiet-hours">
      <header>
        <h2 id="quiet-hours">Quiet hours</h2>
      </header>
      <div class="body stack">
        <p>
          Some templates stop workspaces on certain days. Your workspaces stop at this time.
          {!data.user_set && " Not set: midnight UTC."}
        </p>
        <QuietHoursForm key={data.raw_schedule} quietHours={data} reload={reload} />
        <p class="small mut">
          Next: <Time at={data.next} />
        </p>
      </div>
    </section>
  );
};

const QuietHoursForm = ({ quietHours, reload }: { quietHours: Chosen; reload: () => Promise<void> }) => {
  const problem = useSignal("");
  const save = async (schedule: string): Promise<void> => {
    try {
      await call("PUT /users/:user/quiet-hours", { path, body: { schedule } });
      problem.value = "";
      await reload();
      showToast("Quiet hours saved");
    } catch (error) {
      problem.value = (error instanceof Problem && error.body.validations?.[0]?.detail) || formatError(error);
    }
  };
  const browserZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = useSignal(quietHours.user_set ? quietHours.timezone : browserZone);
  const zones = useMemo(
    () => [...new Set([quietHours.timezone, browserZone, ...Intl.supportedValuesOf("timeZone")])],
    [],
  );
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        const [hour, minute] = String(new FormData(event.currentTarget).get("time")).split(":").map(Number);
        void save(`CRON_TZ=${zone.value} ${minute} ${hour} * * *`);
      }}
    >
      <Field
        label="Time"
        name="time"
        type="time"
        required
        defaultValue={quietHours.user_set ? quietHours.time : "22:00"}
      />
      <Select
        label="Time zone"
        value={zone.value}
        choices={zones.map((value) => ({ value, label: value.replaceAll("_", " ") }))}
        onPick={writeTo(zone)}
        error={problem.value}
      />
      <div class="line wrap">
        <Button look="primary" type="submit">
          Save quiet hours
        </Button>
        {quietHours.user_set && <Button onPress={() => save("")}>Reset to midnight UTC</Button>}
      </div>
    </form>
  );
};
