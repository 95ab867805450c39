// The root of the app: session, live lists, and the frame around every page.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ErrorBoundary } from "preact-iso/lazy";
import { LocationProvider, Route, Router, useLocation } from "preact-iso/router";
import type { Banner } from "#schema/deployment/appearance.ts";
import { banners, followAppearance } from "../data/branding.ts";
import { followInbox } from "../data/inbox.ts";
import { connection, reconnectNow } from "../data/live-socket.ts";
import { loadUserAppearance } from "../data/looks.ts";
import { me, needsEnrollment, watchSession } from "../data/session.ts";
import { CommandPanel } from "../parts/as-command.tsx";
import { Button, ButtonLink, IconButton } from "../parts/button.tsx";
import { ConfirmDialogs } from "../parts/dialog.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icon.tsx";
import { startSession } from "./begin.ts";
import { Frame } from "./frame.tsx";
import { Inbox } from "./inbox.tsx";
import { onNoticeClick } from "./install.ts";
import { listenForKeys, onKeys } from "./keys.ts";
import { Nav, TabBar } from "./nav.tsx";
import { MORE_PLACES, PLACES } from "./page-list.ts";
import { openPalette, Palette } from "./palette.tsx";
import { startPrefetching } from "./prefetch.ts";
import { onRepositoryPaste } from "./repository-link.ts";
import { routes, signInRoutes } from "./routes.ts";
import { openShortcuts, Shortcuts } from "./shortcuts.tsx";
import { showError, Toasts } from "./toasts.tsx";

/** A channel of relative luminance (WCAG 2). */
const toChannel = (hex: string): number => {
  const value = Number.parseInt(hex, 16) / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
};

/** Returns black or white, whichever has more contrast with a color such as #1f6feb: always at least 4.5 to 1. */
const chooseTextColor = (color: string): "#000000" | "#ffffff" => {
  const [red, green, blue] = [1, 3, 5].map((start) => toChannel(color.slice(start, start + 2))) as [
    number,
    number,
    number,
  ];
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
};

// A banner that says since when the connection to the server is lost, and when the next retry is. The content of the page stays.

/** Short interruptions are not shown. */
const DISCONNECTED_BANNER_DELAY_MS = 1_500;

const formatClock = (at: number): string => new Date(at).toTimeString().slice(0, 8);

const DisconnectedBanner = () => {
  const cut = connection.value.state === "cut" ? connection.value : undefined;
  const now = useSignal(Date.now());
  useEffect(() => {
    if (!cut) return;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, 500);
    return () => clearInterval(timer);
  }, [cut === undefined]);
  if (!cut || now.value - cut.since < DISCONNECTED_BANNER_DELAY_MS) return null;
  const seconds = Math.max(0, Math.ceil((cut.next - now.value) / 1000));
  return (
    <div class="banner bad" role="status">
      <span class="t-bad">
        <Icon name="warn" />
      </span>
      <span>
        The server is not responding. Last updated {formatClock(cut.since)}.{" "}
        {seconds > 0 ? `Retrying in ${seconds} s.` : "Retrying now."}
      </span>
      <span class="push line">
        <Button small onPress={reconnectNow}>
          Retry now
        </Button>
      </span>
    </div>
  );
};

// The administrators' announcements, shown above each page until dismissed in this browser.
const DISMISSED_KEY = "banners-put-away";

/** Identified by text, so that a repeated announcement appears again. */
const dismissedAnnouncements = signal<readonly string[]>(
  localStorage.getItem(DISMISSED_KEY)?.split("\n").map(decodeURIComponent) ?? [],
);

const dismiss = (message: string): void => {
  // Forgets dismissals of announcements that have been removed.
  const currentMessages = new Set(banners.value.map((one) => one.message));
  dismissedAnnouncements.value = [...dismissedAnnouncements.value.filter((one) => currentMessages.has(one)), message];
  localStorage.setItem(DISMISSED_KEY, dismissedAnnouncements.value.map(encodeURIComponent).join("\n"));
};

const Announcement = ({ banner: { message, background_color } }: { banner: Banner }) => {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const style = box.current?.style;
    if (!style) return;
    style.backgroundColor = background_color;
    style.color = background_color && chooseTextColor(background_color);
  }, [background_color]);
  return (
    <div class="banner announcement" ref={box} role="note" aria-label="Announcement">
      <span>{message}</span>
      <IconButton class="push" icon="x" label="Dismiss announcement" onPress={() => dismiss(message)} />
    </div>
  );
};

const Announcements = () => (
  <>
    {banners.value
      .filter(({ message }) => !dismissedAnnouncements.value.includes(message))
      .map((banner) => (
        <Announcement key={banner.message} banner={banner} />
      ))}
  </>
);

listenForKeys();
addEventListener("keydown", () => void import("./keep-focus.ts"), { once: true });

const NotFound = () => (
  <Frame title="Page not found">
    <div class="page">
      <Empty icon="search" title="No page exists at this URL.">
        <ButtonLink look="primary" href="/">
          Home
        </ButtonLink>
      </Empty>
    </div>
  </Frame>
);

/** These paths are served as separate pages, so the browser loads them. */
const ROUTER_SCOPE =
  /^\/(?!api\/|swagger|settings\/|external-auth|cli-auth|open-app|oauth2\/|@|assets\/|healthz|readyz)/;

const SECURITY_PATH = "/account/security";

const SignedInApp = () => {
  const { route, path } = useLocation();
  useEffect(() => {
    void startSession().then(() => {
      if (me.value === null) return;
      followInbox();
      void loadUserAppearance().catch(() => undefined);
      startPrefetching();
    });
    const stops = [
      watchSession(),
      followAppearance(),
      onNoticeClick(route),
      onRepositoryPaste(route),
      onKeys("mod+k", openPalette),
      onKeys("?", openShortcuts),
      onKeys("n", () => route("/new")),
      ...[...PLACES, ...MORE_PLACES].map(({ keys, href }) => onKeys(keys, () => route(href))),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  // A new page starts at the top.
  useEffect(() => window.scrollTo(0, 0), [path]);
  // Until they have a second factor, the server refuses everything else.
  const mustEnroll = needsEnrollment.value && path !== SECURITY_PATH;
  useEffect(() => (mustEnroll ? route(SECURITY_PATH, true) : undefined), [mustEnroll]);
  if (me.value === null) return null;
  return (
    <>
      <a class="btn skip" href="#main">
        Skip to content
      </a>
      <div class="app">
        <Nav />
        <main class="main" id="main" tabIndex={-1}>
          {!needsEnrollment.value && <DisconnectedBanner />}
          <Announcements />
          <ErrorBoundary onError={showError}>
            <Router>
              {Object.entries(routes).map(([path, component]) => (
                // One key for all paths: with one key per path, a page would be recreated when its tab changes.
                <Route key="page" path={path} component={component} />
              ))}
              <Route default component={NotFound} />
            </Router>
          </ErrorBoundary>
        </main>
        <TabBar />
      </div>
      <Palette />
      <CommandPanel />
      <Inbox />
      <ConfirmDialogs />
      <Shortcuts />
      <Toasts />
    </>
  );
};

const SignInPages = () => (
  <ErrorBoundary onError={showError}>
    <Router>
      {Object.entries(signInRoutes).map(([path, component]) => (
        <Route key={path} path={path} component={component} />
      ))}
    </Router>
  </ErrorBoundary>
);

const Root = () => (useLocation().path in signInRoutes ? <SignInPages /> : <SignedInApp />);

export const App = () => (
  <LocationProvider scope={ROUTER_SCOPE}>
    <Root />
  </LocationProvider>
);
