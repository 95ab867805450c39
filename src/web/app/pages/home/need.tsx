// One item that needs attention, with its actions.
import type { ComponentChildren } from "preact";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import type { Need } from "../../data/needs.ts";
import { getChatState } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { workspaces } from "../../data/workspaces.ts";
import type { IconName } from "../../icons.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { Icon } from "../../parts/icon.tsx";
import { now, Time } from "../../parts/time.tsx";

/** Returns a key that stays the same for the same chat or workspace. */
export const toKey = (need: Need): string => `${need.kind} ${"chat" in need ? need.chat.id : need.workspace.id}`;

type NeedFrameProps = {
  readonly icon: IconName;
  readonly tone: "t-attn" | "t-bad";
  readonly href: string;
  readonly name: string;
  readonly situation: string;
  readonly at: string;
  readonly text?: ComponentChildren;
  readonly command?: string;
  readonly children: ComponentChildren;
};

const NeedFrame = ({ icon, tone, href, name, situation, at, text, command, children }: NeedFrameProps) => (
  <li class="need">
    <span class={tone}>
      <Icon name={icon} />
    </span>
    <div>
      <p class="what">
        <a href={href}>{name}</a> {situation}
      </p>
      {text && <p class="small">{text}</p>}
    </div>
    <Time class="dim small" at={at} />
    {command && (
      <pre class="cmd mono" tabIndex={0}>
        {command}
      </pre>
    )}
    <div class="acts">{children}</div>
  </li>
);

/** Returns the command of a call, or its raw arguments. */
const parseCommand = (args: string): string => {
  try {
    const { command } = JSON.parse(args) as { command?: unknown };
    return typeof command === "string" ? command : args;
  } catch {
    return args;
  }
};

export const NeedItem = ({ need }: { need: Need }) => {
  if (need.kind === "chat") {
    const [firstCall] = need.asked?.tool_calls ?? [];
    const workspace = need.chat.workspace_id ? workspaces.value.get(need.chat.workspace_id)?.name : undefined;
    const isPermission = need.asked?.kind === "permission";
    return (
      <NeedFrame
        icon="key"
        tone="t-attn"
        href={`/chats/${need.chat.id}`}
        name={need.chat.title}
        situation={
          isPermission ? `asks to use ${firstCall?.tool_name ?? "a tool"}` : `is ${getChatState(need.chat).words}`
        }
        at={need.at}
        text={workspace && `In ${workspace}.`}
        command={isPermission && firstCall ? parseCommand(firstCall.args) : undefined}
      >
        <ButtonLink look="primary" href={`/chats/${need.chat.id}`}>
          Answer
        </ButtonLink>
      </NeedFrame>
    );
  }
  if (need.kind === "chat_failed") {
    return (
      <NeedFrame
        icon="warn"
        tone="t-bad"
        href={`/chats/${need.chat.id}`}
        name={need.chat.title}
        situation="failed"
        at={need.at}
        text={need.chat.last_error?.message}
      >
        <ButtonLink href={`/chats/${need.chat.id}`}>Open</ButtonLink>
      </NeedFrame>
    );
  }
  return <WorkspaceNeed kind={need.kind} row={need.workspace} at={need.at} />;
};

const FAILED_TEXTS: Record<WorkspaceSummary["transition"], string> = {
  start: "did not start",
  stop: "did not stop",
  delete: "was not deleted",
};

const WorkspaceNeed = ({ kind, row, at }: { kind: Need["kind"]; row: WorkspaceSummary; at: string }) => {
  const href = `/workspaces/${row.id}`;
  const commonProps = { href, name: row.name, at };
  if (kind === "failed") {
    return (
      <NeedFrame {...commonProps} icon="warn" tone="t-bad" situation={FAILED_TEXTS[row.transition]} text={row.error}>
        <Button
          icon="restart"
          onPress={() => (row.transition === "stop" ? actions.stopWorkspace(row) : actions.startWorkspace(row))}
        >
          Retry
        </Button>
        <ButtonLink href={`${href}/logs`}>View log</ButtonLink>
      </NeedFrame>
    );
  }
  if (kind === "unhealthy") {
    const unhealthyAgents = row.agents.filter(({ healthy }) => !healthy).map(({ name }) => name);
    return (
      <NeedFrame
        {...commonProps}
        icon="warn"
        tone="t-bad"
        situation="is not healthy"
        text={`Agent ${unhealthyAgents.join(", ")}: see its log.`}
      >
        <ButtonLink href={`${href}/logs`}>View log</ButtonLink>
        <Button look="ghost" icon="restart" onPress={() => actions.restartWorkspace(row)}>
          Restart
        </Button>
      </NeedFrame>
    );
  }
  if (kind === "deleting") {
    return (
      <NeedFrame {...commonProps} icon="clock" tone="t-attn" situation="will be deleted soon" text="Not used recently.">
        <Button onPress={() => actions.activateWorkspace(row)}>Keep it</Button>
      </NeedFrame>
    );
  }
  const leftMs = Math.max(0, Date.parse(row.deadline ?? at) - now.value);
  const isLast = row.max_deadline !== undefined && row.max_deadline === row.deadline;
  return (
    <NeedFrame
      {...commonProps}
      icon="clock"
      tone="t-attn"
      situation={`stops in ${formatDuration(leftMs)}`}
      text={isLast ? "It reached the template's maximum lifetime." : undefined}
    >
      {!isLast && <Button onPress={() => actions.extendDeadline(row)}>Keep 1 h more</Button>}
      <Button look="ghost" onPress={() => actions.stopWorkspace(row)}>
        Stop now
      </Button>
    </NeedFrame>
  );
};
