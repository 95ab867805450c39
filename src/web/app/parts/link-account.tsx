// Links an external account without leaving the page: a popup opens the service, reports the result and closes. If popups are blocked, a
// tab is used.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { toClass } from "./button.tsx";

/** Same name as in src/web/browser/external-auth-link.ts. The service's page cuts the popup off from its opener, so a channel is used. */
const CHANNEL = "external-auth";

const POPUP_FEATURES = "popup,width=640,height=760";

type LinkAccountProps = {
  readonly id: string;
  readonly name: string;
  readonly small?: boolean;
  /** Called when any window has linked an account. */
  readonly onLinked: () => unknown;
  readonly children: ComponentChildren;
};

export const LinkAccount = ({ id, name, small, onLinked, children }: LinkAccountProps) => {
  useEffect(() => {
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = () => void onLinked();
    // Covers browsers without channels, and tabs that were closed before they could report.
    const checkLinked = (): void => void (document.hidden || onLinked());
    document.addEventListener("visibilitychange", checkLinked);
    return () => {
      channel.close();
      document.removeEventListener("visibilitychange", checkLinked);
    };
  }, [id]);
  const openPopup = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (window.open(`/external-auth/${encodeURIComponent(id)}`, `link-${id}`, POPUP_FEATURES)) event.preventDefault();
  };
  return (
    <a
      class={toClass({ small })}
      href={`/external-auth/${encodeURIComponent(id)}`}
      target="_blank"
      aria-label={`Link ${name}`}
      onClick={openPopup}
      rel="noopener"
    >
      {children}
    </a>
  );
};
