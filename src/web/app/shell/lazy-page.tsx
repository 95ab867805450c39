// A page whose code is loaded when first opened. If it cannot be loaded (the server is unreachable, or a new build has replaced the one
// this page came from), it shows an error; reloading the app fixes both.
import type { AnyComponent } from "preact";
import lazy from "preact-iso/lazy";
import { loadCode } from "../data/load-code.ts";
import { Button } from "../parts/button.tsx";
import { Empty } from "../parts/empty.tsx";
import { Frame } from "./frame.tsx";

/** Enough for a bad connection. The first attempt may have been the prefetch on hover. */
const MAX_TRIES = 3;

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

/** A page whose code is loaded when it is first shown, or earlier with `prefetch`; then it renders immediately. */
export type LazyPage = AnyComponent & { readonly prefetch: () => Promise<unknown> };

/** Wraps a page that is part of the app's own code. */
export const eagerPage = (page: AnyComponent): LazyPage => Object.assign(page, { prefetch: () => Promise.resolve() });

/** Returns a page that `load` fetches when it is first shown. */
export const lazyPage = (load: () => Promise<{ default: AnyComponent }>): LazyPage => {
  const page = lazy<AnyComponent>(() =>
    loadCode(load, MAX_TRIES).catch(() => ({ default: NotLoaded as AnyComponent })),
  );
  // A failed prefetch is retried when the page is needed.
  const prefetch = (): Promise<unknown> => load().then(page.preload, () => undefined);
  return Object.assign(page, { prefetch });
};
