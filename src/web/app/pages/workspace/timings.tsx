// How long each step of the latest build took, as a waterfall.
import type { Build, BuildTimings } from "#schema/workspaces/build.ts";
import { call } from "../../data/api.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { formatDuration } from "../../parts/format-time.ts";

type Step = {
  readonly group: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly look: string;
};

const GROUPS = ["Build", "Agent"];

/** Converts the timings to steps, with times in milliseconds since 1970. */
const toSteps = (timings: BuildTimings): Step[] => {
  const span = ({ started_at, ended_at }: { started_at: string; ended_at: string }) => ({
    from: Date.parse(started_at),
    to: Date.parse(ended_at),
  });
  return [
    ...timings.provisioner_timings.map((one) => ({
      group: "Build",
      // One resource has several timings, one for each step.
      name: [one.resource, one.action].filter(Boolean).join(": ") || one.stage,
      look: "p1",
      ...span(one),
    })),
    ...timings.agent_connection_timings.map((one) => ({
      group: "Agent",
      name: `${one.workspace_agent_name} connects`,
      look: "p4",
      ...span(one),
    })),
    ...timings.agent_script_timings.map((one) => ({
      group: "Agent",
      name: one.display_name,
      look: one.exit_code === 0 ? "p4" : "p2",
      ...span(one),
    })),
  ].sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group) || a.from - b.from);
};

const MARKS = [0, 0.25, 0.5, 0.75, 1];

export const Timings = ({ build }: { build: Build }) => {
  const { state, reload } = useResource(`timings ${build.id}`, () =>
    call("GET /workspacebuilds/:workspacebuild/timings", { path: { workspacebuild: build.id } }),
  );
  const ready = build.resources.flatMap(({ agents }) => agents).map(({ lifecycle_state }) => lifecycle_state);
  useChange([build.status, ...ready].join(" "), reload);
  const steps = toSteps(
    state.value.data ?? { provisioner_timings: [], agent_script_timings: [], agent_connection_timings: [] },
  );
  if (steps.length === 0) return null;
  const from = Math.min(...steps.map((one) => one.from));
  const totalMs = Math.max(1, ...steps.map((one) => one.to - from));
  const longest = Math.max(...steps.map((one) => one.to - one.from));
  return (
    <section class="panel" aria-labelledby="timings">
      <header>
        <h2 id="timings">Timings of build {build.build_number}</h2>
        <span class="dim small num">{formatDuration(totalMs)}</span>
      </header>
      <div class="body">
        <div class="fall">
          {steps.map((one, at) => (
            <Row
              key={`${one.name} ${one.from}`}
              step={one}
              begin={from}
              totalMs={totalMs}
              isLongest={one.to - one.from === longest && steps.length > 1}
              isFirst={steps[at - 1]?.group !== one.group}
            />
          ))}
        </div>
      </div>
    </section>
  );
};

type RowProps = { step: Step; begin: number; totalMs: number; isFirst: boolean; isLongest: boolean };

const Row = ({ step, begin, totalMs, isFirst, isLongest }: RowProps) => {
  const took = step.to - step.from;
  return (
    <>
      {isFirst && <span class="stage">{step.group}</span>}
      <span class="clip" title={step.name}>
        {step.name}
      </span>
      <svg
        viewBox="0 0 100 28"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${step.name}: ${formatDuration(took)}, begins at ${formatDuration(step.from - begin)}`}
      >
        {MARKS.map((mark) => (
          <path key={mark} class="grid" d={`M${mark * 100} 0v28`} />
        ))}
        <rect
          class={step.look}
          x={((step.from - begin) / totalMs) * 100}
          y="8"
          width={Math.max(0.5, (took / totalMs) * 100)}
          height="12"
        />
      </svg>
      <span class={isLongest ? "num right small t-attn" : "num right small mut"}>{formatDuration(took)}</span>
    </>
  );
};
