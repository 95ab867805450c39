// A page that is fetched when it is opened first. Where it cannot be had (the server is away, or a new build has taken the place of the
// one that this page was loaded from), it says so; loading everything anew is the way out of both.
import type { AnyComponent } from "preact";
import lazy from "preact-iso/lazy";
import { Button } from "../parts/button.tsx";
import { Empty } from "../parts/empty.tsx";
import { Frame } from "./frame.tsx";

const NotLoaded = () => (
  <Frame title="Not loaded">
    <div class="page" role="alert">
      <Empty
        icon="warn"
        title="This page could not be loaded"
        text="The server did not answer, or it has a new version."
      >
        <Button look="primary" onPress={() => location.reload()}>
          Load again
        </Button>
      </Empty>
    </div>
  </Frame>
);

/** Fetches a page by `load` when it is shown first. */
export const later = (load: () => Promise<{ default: AnyComponent }>): AnyComponent =>
  lazy(() => load().catch(() => ({ default: NotLoaded as AnyComponent })));
