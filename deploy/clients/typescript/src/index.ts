// A client for a Slipway server: `new Slipway({ url, token })`.
export {
  type CallOptions,
  type LogOptions,
  type Operation,
  type RequestOf,
  type ResultOf,
  type Schemas,
  Slipway,
  type SlipwayOptions,
} from "./client.js";
export { SlipwayError, type Validation } from "./error.js";
export type { RetryOptions } from "./retry.js";
