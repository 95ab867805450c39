// Linking an account elsewhere without leaving the page: a small window goes to the service, returns, says so and closes. Where windows
// are not let up it is a tab.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { toClass } from "./button.tsx";

/** As in src/web/browser/external-auth-link.ts. The service's own page cuts the window off from its opener, so this is how it tells. */
const CHANNEL = "external-auth";

const SIZE = "popup,width=640,height=760";

type LinkAccountProps = {
  readonly id: string;
  readonly name: string;
  readonly small?: boolean;
  /** Some account was linked, in whatever window. */
  readonly linked: () => unknown;
  readonly children: ComponentChildren;
};

export const LinkAccount = ({ id, name, small, linked, children }: LinkAccountProps) => {
  useEffect(() => {
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = () => void linked();
    // A tab of a device that knows no channel, or one that was closed before it could tell.
    const look = (): void => void (document.hidden || linked());
    document.addEventListener("visibilitychange", look);
    return () => {
      channel.close();
      document.removeEventListener("visibilitychange", look);
    };
  }, [id]);
  const open = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (window.open(`/external-auth/${encodeURIComponent(id)}`, `link-${id}`, SIZE)) event.preventDefault();
  };
  return (
    <a
      class={toClass({ small })}
      href={`/external-auth/${encodeURIComponent(id)}`}
      target="_blank"
      aria-label={`Link ${name}`}
      onClick={open}
      rel="noopener"
    >
      {children}
    </a>
  );
};
