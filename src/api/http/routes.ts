// Routes as they are declared, gathered before they become one app. An app of Elysia below another is added to it route by route, and each
// route of ours would be added once for every app that it is below, four times as a rule: half of what a start of the server cost.
import { type AnyElysia, Elysia } from "elysia";

type Declaration = {
  readonly method: string;
  readonly path: string;
  readonly handler: unknown;
  readonly hook: object;
};

/** What of an app declares routes. */
class Routes {
  readonly #prefix: string;
  readonly gathered: Declaration[] = [];
  /** What gives route options their meaning, such as `user: true`. */
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
      for (const { path, ...route } of other.gathered) this.gathered.push({ ...route, path: this.#prefix + path });
    }
    return this;
  }

  #adder(method: string) {
    return (path: string, handler: unknown, hook: object = {}): this => {
      this.gathered.push({ method, path: this.#prefix + path, handler, hook });
      return this;
    };
  }
}

const typed = <const Prefix extends string = "">(options?: { readonly prefix?: Prefix }) => new Elysia(options);

/** Declares routes as an app of Elysia does, with `get` and its like and with `use`; they answer once they are in an app by `addRoutes`. */
export const routes = <const Prefix extends string = "">(options: { readonly prefix?: Prefix } = {}) =>
  new Routes(options.prefix) as unknown as ReturnType<typeof typed<Prefix>>;

/** Adds what `routes` has gathered to an app, each route once, with its options as `as` makes them. */
export const addRoutes = (app: AnyElysia, declared: AnyElysia, as = (hook: object) => hook): AnyElysia => {
  const { macros, gathered } = declared as unknown as Routes;
  for (const macro of macros) app.use(macro);
  for (const { method, path, handler, hook } of gathered) app.route(method, path, handler as never, as(hook) as never);
  return app;
};
