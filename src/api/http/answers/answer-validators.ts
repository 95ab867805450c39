// How the router looks at what handlers return. Elysia would compile a validator for each status that a route may answer with, for each
// route that is called and each server; ours are compiled with the first answer of a status, once for all that share the schema. Errors, of
// which routes name eight each, never pass here: they are thrown.
import { Kind, type TSchema } from "@sinclair/typebox";
import { getSchemaValidator } from "elysia";

type Validator = NonNullable<ReturnType<typeof getSchemaValidator<TSchema>>>;

/** What the code that Elysia makes of a route asks of a validator. It takes an object that is no schema as one. */
class AnswerValidator {
  readonly provider = "typebox";
  /** No schema of an answer changes a value. */
  readonly hasTransform = false;
  readonly schema: TSchema;
  #made: Validator | undefined;

  constructor(schema: TSchema) {
    this.schema = schema;
  }

  Check(value: unknown): boolean {
    return this.#compiled.Check(value);
  }

  /** Without members that the schema does not know. */
  Clean(value: unknown): unknown {
    return this.#compiled.Clean?.(value) ?? value;
  }

  Errors(value: unknown): ReturnType<Validator["Errors"]> {
    return this.#compiled.Errors(value);
  }

  get #compiled(): Validator {
    this.#made ??= getSchemaValidator(this.schema, { normalize: true }) as Validator;
    return this.#made;
  }
}

const known = new WeakMap<TSchema, AnswerValidator>();

const makeValidator = (schema: TSchema): AnswerValidator => {
  const made = known.get(schema) ?? new AnswerValidator(schema);
  known.set(schema, made);
  return made;
};

type Answers = Record<string, TSchema | AnswerValidator>;

/** What a route answers by status, as its options name it: one schema alone is that of 200. */
const listAnswers = (hook: object): Answers => {
  const { response = {} } = hook as { response?: TSchema | Answers };
  return Kind in response ? { 200: response as TSchema } : (response as Answers);
};

/** The schemas of a route's answers by status, by its options. */
export const listSchemas = (hook: object): Record<string, TSchema> =>
  Object.fromEntries(
    Object.entries(listAnswers(hook)).map(([status, one]) => [
      status,
      one instanceof AnswerValidator ? one.schema : one,
    ]),
  );

/** Made when it is asked for: a map for each of hundreds of routes would be a third of their cost. */
const VALIDATORS: ProxyHandler<Answers> = {
  get: (answers, status) => {
    const schema = Reflect.get(answers, status);
    return schema && makeValidator(schema);
  },
};

/** The options of a route with validators in place of the schemas of its answers. */
export const withValidators = <Hook extends object>(hook: Hook): Hook =>
  "response" in hook ? { ...hook, response: new Proxy(listAnswers(hook), VALIDATORS) } : hook;
