// Selects the days and time zone of a report. Both are stored in the address.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, Options } from "../../parts/field.tsx";
import { writeTextTo, writeTo } from "../../parts/handlers.ts";
import { CHOICES, type DateRange, formatDay } from "./range.ts";

/** The viewer's own time zone. */
export const LOCAL_TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns the address of the same page with other days. */
const toRangeUrl = (path: string, requested: Readonly<Record<string, string | undefined>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(requested)) if (value) query.set(name, value);
  return query.size > 0 ? `${path}?${query}` : path;
};

export const ChooseRange = ({ range }: { range: DateRange }) => {
  const { path, query, route } = useLocation();
  const isOpen = useSignal(false);
  const isCustom = query.from !== undefined;
  const applyRange = (requested: Readonly<Record<string, string | undefined>>): void =>
    route(toRangeUrl(path, { zone: query.zone, ...requested }), true);
  return (
    <>
      <span class="group desk">
        {CHOICES.map((days) => (
          <Button
            key={days}
            pressed={!isCustom && range.days === days}
            onPress={() => applyRange({ days: String(days) })}
          >
            {days} days
          </Button>
        ))}
      </span>
      <Button icon="clock" onPress={() => (isOpen.value = true)}>
        {formatDay(range.first)} to {formatDay(range.last)}
      </Button>
      {isOpen.value && <RangeForm range={range} applyRange={applyRange} close={() => (isOpen.value = false)} />}
    </>
  );
};

type FormProps = {
  range: DateRange;
  applyRange: (requested: Readonly<Record<string, string | undefined>>) => void;
  close: () => void;
};

const RangeForm = ({ range, applyRange, close }: FormProps) => {
  const firstDay = useSignal(range.first);
  const lastDay = useSignal(range.last);
  const zone = useSignal(range.isUtc ? "utc" : "");
  const isInvalid = firstDay.value === "" || lastDay.value === "" || firstDay.value > lastDay.value;
  return (
    <Dialog
      title="Days"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button
            look="primary"
            disabled={isInvalid}
            onPress={() => {
              close();
              applyRange({ from: firstDay.value, to: lastDay.value, zone: zone.value });
            }}
          >
            Apply
          </Button>
        </>
      }
    >
      <div class="stack">
        <Field label="First day" type="date" value={firstDay.value} onInput={writeTextTo(firstDay)} />
        <Field
          label="Last day"
          type="date"
          value={lastDay.value}
          error={firstDay.value > lastDay.value ? "The last day is before the first day." : undefined}
          onInput={writeTextTo(lastDay)}
        />
        {LOCAL_TIME_ZONE !== "UTC" && (
          <Options
            label="Time zone"
            value={zone.value}
            choices={[
              { value: "", label: LOCAL_TIME_ZONE },
              { value: "utc", label: "UTC" },
            ]}
            onPick={writeTo(zone)}
          />
        )}
      </div>
    </Dialog>
  );
};
