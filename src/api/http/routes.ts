// Collects route declarations before they become one app. Nested Elysia apps are merged route by route, which would add each route once per
// level, four times on average: half of the startup time.
import { type AnyElysia, Elysia } from "elysia";

type Declaration = {
  readonly method: string;
  readonly path: string;
  readonly handler: unknown;
  readonly hook: object;
};

/** The part of an Elysia app that declares routes. */
class Routes {
  readonly #prefix: string;
  readonly declarations: Declaration[] = [];
  /** Macros that implement route options such as `user: true`. */
  readonly macros = new Set<AnyElysia>();

  constructor(prefix = "") {
    this.#prefix = prefix;
  }

  get = this.#adder("GET");
  post = this.#adder("POST");
  put = this.#adder("PUT");
  patch = this.#adder("PATCH");
  delete = this.#adder("DELETE");

  use(other: Routes | AnyElysia): this {
    if (!(other instanceof Routes)) this.macros.add(other);
    else {
      for (const macro of other.macros) this.macros.add(macro);
      for (const { path, ...route } of other.declarations)
        this.declarations.push({ ...route, path: this.#prefix + path });
    }
    return this;
  }

  #adder(method: string) {
    return (path: string, handler: unknown, hook: object = {}): this => {
      this.declarations.push({ method, path: this.#prefix + path, handler, hook });
      return this;
    };
  }
}

/** Gives `routes` the type of an Elysia app. Never called. */
const elysiaForTypes = <const Prefix extends string = "">(options?: { readonly prefix?: Prefix }) =>
  new Elysia(options);

/** Declares routes like an Elysia app, with `get`, `post` and `use`. They take effect once `addRoutes` has added them to an app. */
export const routes = <const Prefix extends string = "">(options: { readonly prefix?: Prefix } = {}) =>
  new Routes(options.prefix) as unknown as ReturnType<typeof elysiaForTypes<Prefix>>;

/** Adds the collected routes to an app, each once, with options transformed by `transform`. */
export const addRoutes = (app: AnyElysia, declared: AnyElysia, transform = (hook: object) => hook): AnyElysia => {
  const { macros, declarations } = declared as unknown as Routes;
  for (const macro of macros) app.use(macro);
  for (const { method, path, handler, hook } of declarations)
    app.route(method, path, handler as never, transform(hook) as never);
  return app;
};
