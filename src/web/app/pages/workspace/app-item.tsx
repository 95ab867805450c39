// One app of a workspace: its icon, its status, and its link.
import type { App } from "#schema/workspaces/app.ts";
import type { ShareLevel } from "#schema/workspaces/port-share.ts";
import { type AgentTarget, chooseOpenAction } from "../../data/open.ts";
import { Picture } from "../../parts/picture.tsx";
import { showError } from "../../shell/toasts.tsx";
import { LEVEL_TEXTS } from "./ports.tsx";

const HEALTH_LABELS: Partial<Record<App["health"], string>> = { initializing: "starting", unhealthy: "unhealthy" };
const WINDOW_FEATURES = "noopener,noreferrer,popup,width=1200,height=800";

type AppItemProps = {
  readonly target: AgentTarget;
  readonly app: App;
  readonly host: string;
  /** The name of the group that starts with this app; otherwise empty. */
  readonly heading: string;
};

export const AppItem = ({ target, app, host, heading }: AppItemProps) => {
  const isReachable = target.agent.status === "connected" || app.external;
  const openAction = isReachable ? chooseOpenAction(target, app, host) : undefined;
  const [status] = app.statuses;
  const content = (
    <>
      <span class="line">
        <span class="dim pic">
          <Picture of={app.icon} otherwise={app.command ? "terminal" : "out"} />
        </span>
        <span class="med">{app.display_name || app.slug}</span>
        {HEALTH_LABELS[app.health] && (
          <span class={app.health === "unhealthy" ? "t-bad small" : "dim small"}>{HEALTH_LABELS[app.health]}</span>
        )}
      </span>
      {app.sharing_level !== "owner" && (
        <span class="badge accent">{LEVEL_TEXTS[app.sharing_level as ShareLevel] ?? app.sharing_level}</span>
      )}
      {status?.message && <span class="sub clip">{status.message}</span>}
    </>
  );
  const openInWindow = (event: MouseEvent): void => {
    // With a modifier key, the user chooses how the browser opens the link.
    if (openAction?.way !== "window" || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    window.open(openAction.href, "_blank", WINDOW_FEATURES);
  };
  return (
    <>
      {heading && <li class="item dim small">{heading}</li>}
      <li title={app.tooltip || undefined}>
        {!openAction ? (
          <span class="item dim">{content}</span>
        ) : openAction.way === "program" ? (
          <button type="button" class="item" onClick={() => void openAction.act().catch(showError)}>
            {content}
          </button>
        ) : (
          <a
            class="item"
            href={openAction.href}
            onClick={openInWindow}
            {...(openAction.way === "here" ? {} : { target: "_blank", rel: "noreferrer" })}
          >
            {content}
          </a>
        )}
      </li>
    </>
  );
};
