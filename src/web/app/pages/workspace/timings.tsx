// How long each step of the latest build took, as a waterfall.
import type { Build, BuildTimings } from "#schema/workspaces/build.ts";
import { call } from "../../data/api.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { formatDuration } from "../../parts/format-time.ts";

type Step = {
  readonly group: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly className: string;
};

const GROUPS = ["Build", "Agent"];

/** Converts the timings to steps, with times in milliseconds since 1970. */
const toSteps = (timings: BuildTimings): Step[] => {
  const toMilliseconds = ({ started_at, ended_at }: { started_at: string; ended_at: string }) => ({
    startMs: Date.parse(started_at),
    endMs: Date.parse(ended_at),
  });
  return [
    ...timings.provisioner_timings.map((one) => ({
      group: "Build",
      // One resource has several timings, one for each step.
      name: [one.resource, one.action].filter(Boolean).join(": ") || one.stage,
      className: "p1",
      ...toMilliseconds(one),
    })),
    ...timings.agent_connection_timings.map((one) => ({
      group: "Agent",
      name: `${one.workspace_agent_name} connects`,
      className: "p4",
      ...toMilliseconds(one),
    })),
    ...timings.agent_script_timings.map((one) => ({
      group: "Agent",
      name: one.display_name,
      className: one.exit_code === 0 ? "p4" : "p2",
      ...toMilliseconds(one),
    })),
  ].sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group) || a.startMs - b.startMs);
};

const GRID_POSITIONS = [0, 0.25, 0.5, 0.75, 1];

export const Timings = ({ build }: { build: Build }) => {
  const { state, reload } = useResource(`timings ${build.id}`, () =>
    call("GET /workspacebuilds/:workspacebuild/timings", { path: { workspacebuild: build.id } }),
  );
  const agentStates = build.resources.flatMap(({ agents }) => agents).map(({ lifecycle_state }) => lifecycle_state);
  useChange([build.status, ...agentStates].join(" "), reload);
  const steps = toSteps(
    state.value.data ?? { provisioner_timings: [], agent_script_timings: [], agent_connection_timings: [] },
  );
  if (steps.length === 0) return null;
  const buildStartMs = Math.min(...steps.map((one) => one.startMs));
  const totalMs = Math.max(1, ...steps.map((one) => one.endMs - buildStartMs));
  const longestMs = Math.max(...steps.map((one) => one.endMs - one.startMs));
  return (
    <section class="panel" aria-labelledby="timings">
      <header>
        <h2 id="timings">Timings of build {build.build_number}</h2>
        <span class="dim small num">{formatDuration(totalMs)}</span>
      </header>
      <div class="body">
        <div class="fall">
          {steps.map((one, index) => (
            <StepRow
              key={`${one.name} ${one.startMs}`}
              step={one}
              buildStartMs={buildStartMs}
              totalMs={totalMs}
              isLongest={one.endMs - one.startMs === longestMs && steps.length > 1}
              isFirst={steps[index - 1]?.group !== one.group}
            />
          ))}
        </div>
      </div>
    </section>
  );
};

type RowProps = { step: Step; buildStartMs: number; totalMs: number; isFirst: boolean; isLongest: boolean };

const StepRow = ({ step, buildStartMs, totalMs, isFirst, isLongest }: RowProps) => {
  const durationMs = step.endMs - step.startMs;
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
        aria-label={`${step.name}: ${formatDuration(durationMs)}, begins at ${formatDuration(step.startMs - buildStartMs)}`}
      >
        {GRID_POSITIONS.map((position) => (
          <path key={position} class="grid" d={`M${position * 100} 0v28`} />
        ))}
        <rect
          class={step.className}
          x={((step.startMs - buildStartMs) / totalMs) * 100}
          y="8"
          width={Math.max(0.5, (durationMs / totalMs) * 100)}
          height="12"
        />
      </svg>
      <span class={isLongest ? "num right small t-attn" : "num right small mut"}>{formatDuration(durationMs)}</span>
    </>
  );
};
