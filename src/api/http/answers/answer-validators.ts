// Validates responses against their schemas. Elysia would compile a validator per status, route and server; these are compiled with the
// first response of a status, once for all routes that share the schema. Errors, of which each route declares eight, never pass here
// because they are thrown.
import { Kind, type TSchema } from "@sinclair/typebox";
import { getSchemaValidator } from "elysia";

type Validator = NonNullable<ReturnType<typeof getSchemaValidator<TSchema>>>;

/** The parts of a validator that Elysia's generated code uses. Elysia accepts any object that is not a schema as a validator. */
class AnswerValidator {
  readonly provider = "typebox";
  /** Response schemas never transform values. */
  readonly hasTransform = false;
  readonly schema: TSchema;
  #validator: Validator | undefined;

  constructor(schema: TSchema) {
    this.schema = schema;
  }

  Check(value: unknown): boolean {
    return this.#compiled.Check(value);
  }

  /** Returns the value without members that the schema does not define. */
  Clean(value: unknown): unknown {
    return this.#compiled.Clean?.(value) ?? value;
  }

  Errors(value: unknown): ReturnType<Validator["Errors"]> {
    return this.#compiled.Errors(value);
  }

  get #compiled(): Validator {
    this.#validator ??= getSchemaValidator(this.schema, { normalize: true }) as Validator;
    return this.#validator;
  }
}

const validators = new WeakMap<TSchema, AnswerValidator>();

const makeValidator = (schema: TSchema): AnswerValidator => {
  const validator = validators.get(schema) ?? new AnswerValidator(schema);
  validators.set(schema, validator);
  return validator;
};

type ResponseSchemas = Record<string, TSchema | AnswerValidator>;

/** Returns a route's response schemas by status; a single schema means 200. */
const listResponseSchemas = (hook: object): ResponseSchemas => {
  const { response = {} } = hook as { response?: TSchema | ResponseSchemas };
  return Kind in response ? { 200: response as TSchema } : (response as ResponseSchemas);
};

/** Returns the schemas of a route's responses by status. */
export const listSchemas = (hook: object): Record<string, TSchema> =>
  Object.fromEntries(
    Object.entries(listResponseSchemas(hook)).map(([status, schema]) => [
      status,
      schema instanceof AnswerValidator ? schema.schema : schema,
    ]),
  );

/** Creates validators lazily: a map for each of hundreds of routes would be a third of their cost. */
const VALIDATOR_PROXY: ProxyHandler<ResponseSchemas> = {
  get: (answers, status) => {
    const schema = Reflect.get(answers, status);
    return schema && makeValidator(schema);
  },
};

/** Returns the route options with validators in place of the response schemas. */
export const withValidators = <Hook extends object>(hook: Hook): Hook =>
  "response" in hook ? { ...hook, response: new Proxy(listResponseSchemas(hook), VALIDATOR_PROXY) } : hook;
