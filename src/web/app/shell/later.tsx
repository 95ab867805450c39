// A page that is fetched when it is opened first. Where it cannot be had (the server is away, or a new build has taken the place of the
// one that this page was loaded from), it says so; loading everything again is the way out of both.
import type { AnyComponent } from "preact";
import lazy from "preact-iso/lazy";
import { Button } from "../parts/button.tsx";
import { Empty } from "../parts/empty.tsx";
import { Frame } from "./frame.tsx";

const PAUSE_MS = 500;

const NotLoaded = () => (
  <Frame title="Not loaded">
    <div class="page" role="alert">
      <Empty icon="warn" title="Can't load this page" text="The server is not responding, or it was updated.">
        <Button look="primary" onPress={() => location.reload()}>
          Reload
        </Button>
      </Empty>
    </div>
  </Frame>
);

/** A page that is fetched when it is shown first, or before by `fetchAhead`: then it is drawn in the moment it is asked for. */
export type Later = AnyComponent & { readonly fetchAhead: () => Promise<unknown> };

/** A page that comes with the app. */
export const here = (page: AnyComponent): Later => Object.assign(page, { fetchAhead: () => Promise.resolve() });

/** Fetches a page by `load` when it is shown first. */
export const later = (load: () => Promise<{ default: AnyComponent }>): Later => {
  // On a bad line another try often works. The first one may be that of the pointer which came to the link, so there are two more.
  const again = (): Promise<{ default: AnyComponent }> =>
    new Promise((resolve) => setTimeout(resolve, PAUSE_MS)).then(load);
  const page = lazy<AnyComponent>(() =>
    load()
      .catch(again)
      .catch(again)
      .catch(() => ({ default: NotLoaded as AnyComponent })),
  );
  // What cannot be had ahead is asked for again when it is needed.
  const fetchAhead = (): Promise<unknown> => load().then(page.preload, () => undefined);
  return Object.assign(page, { fetchAhead });
};
