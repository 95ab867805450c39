// The root of the app: session, live lists, and the frame around every page.

import { useEffect } from "preact/hooks";
import { ErrorBoundary } from "preact-iso/lazy";
import { LocationProvider, Route, Router, useLocation } from "preact-iso/router";
import { followAppearance } from "../data/face.ts";
import { followInbox } from "../data/inbox.ts";
import { readLooks } from "../data/looks.ts";
import { me, mustEnroll, watchSession } from "../data/session.ts";
import { CommandPanel } from "../parts/as-command.tsx";
import { ButtonLink } from "../parts/button.tsx";
import { Questions } from "../parts/dialog.tsx";
import { Empty } from "../parts/empty.tsx";
import { lookAhead } from "./ahead.ts";
import { Announcements } from "./announcements.tsx";
import { CutBanner } from "./banner.tsx";
import { beginSession } from "./begin.ts";
import { Frame } from "./frame.tsx";
import { Inbox } from "./inbox.tsx";
import { onNoticeClick } from "./install.ts";
import { listenForKeys, onKeys } from "./keys.ts";
import { Nav, TabBar } from "./nav.tsx";
import { openPalette, Palette } from "./palette.tsx";
import { MORE_PLACES, PLACES } from "./places.ts";
import { onRepositoryPaste } from "./repository-link.ts";
import { doors, routes } from "./routes.ts";
import { openShortcuts, Shortcuts } from "./shortcuts.tsx";
import { failed, Toasts } from "./toasts.tsx";

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
const SCOPE = /^\/(?!api\/|swagger|settings\/|external-auth|cli-auth|open-app|oauth2\/|@|assets\/|healthz|readyz)/;

const SECURITY = "/account/security";

const Inside = () => {
  const { route, path } = useLocation();
  useEffect(() => {
    void beginSession().then(() => {
      if (me.value === null) return;
      followInbox();
      void readLooks().catch(() => undefined);
      lookAhead();
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
  const isKept = mustEnroll.value && path !== SECURITY;
  useEffect(() => (isKept ? route(SECURITY, true) : undefined), [isKept]);
  if (me.value === null) return null;
  return (
    <>
      <a class="btn skip" href="#main">
        Skip to content
      </a>
      <div class="app">
        <Nav />
        <main class="main" id="main" tabIndex={-1}>
          {!mustEnroll.value && <CutBanner />}
          <Announcements />
          <ErrorBoundary onError={failed}>
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
      <Questions />
      <Shortcuts />
      <Toasts />
    </>
  );
};

const Door = () => (
  <ErrorBoundary onError={failed}>
    <Router>
      {Object.entries(doors).map(([path, component]) => (
        <Route key={path} path={path} component={component} />
      ))}
    </Router>
  </ErrorBoundary>
);

const Chosen = () => (useLocation().path in doors ? <Door /> : <Inside />);

export const App = () => (
  <LocationProvider scope={SCOPE}>
    <Chosen />
  </LocationProvider>
);
