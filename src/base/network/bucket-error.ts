// Explains errors of a bucket to the server's operator.

/** Messages that say what to change, by the store's error code or status. */
const MESSAGES: Readonly<Record<string, string>> = {
  NoSuchBucket: "there is no such bucket",
  InvalidAccessKeyId: "s3_access_key is not known there",
  XAdminUserNotFound: "s3_access_key is not known there",
  SignatureDoesNotMatch: "s3_secret_key does not belong to s3_access_key, or s3_region is not the region of the bucket",
  AuthorizationHeaderMalformed: "s3_region is not the region of the bucket",
  AuthorizationQueryParametersError: "s3_region is not the region of the bucket",
  PermanentRedirect: "the bucket is at another endpoint: check s3_region and s3_endpoint",
  InvalidToken: "start the server without AWS_SESSION_TOKEN and S3_SESSION_TOKEN, which Bun sends along",
  RequestTimeTooSkewed: "the clock of this machine is off by minutes",
  QuotaExceeded: "it is full",
  XMinioStorageFull: "it is full",
  ObjectIsNotThere: "it accepted an object but does not have it",
  OtherBytes: "it gives other bytes than it was given",
  TooSlow: "it does not answer in time",
  AccessDenied: "the key may not list, write, read and remove there",
  403: "the key may not write, read and remove there",
  404: "the bucket or an object is missing",
};

type BucketFailure = { readonly status?: number; readonly code?: string; readonly isPassing?: boolean };

export class BucketError extends Error {
  override readonly name = "BucketError";
  readonly status: number | undefined;
  /** The error code of the store or the network; empty if the error has no code. */
  readonly code: string;
  /** True when a retry may succeed. */
  readonly isPassing: boolean;

  constructor(bucket: string, { status, code = "", isPassing = isTemporaryFailure(status, code) }: BucketFailure) {
    const codes = [status, code].filter((one) => one !== undefined && one !== "").join(" ");
    const explanation =
      MESSAGES[code] ?? MESSAGES[String(status)] ?? (status === undefined ? "it does not answer" : "it refuses");
    super(`the bucket ${bucket} cannot be used: ${explanation} (${codes})`);
    this.status = status;
    this.code = code;
    this.isPassing = isPassing;
  }
}

/** Returns whether a retry may succeed. Bytes that were damaged in transit can be sent again. */
const isTemporaryFailure = (status: number | undefined, code: string): boolean =>
  status === undefined ||
  status >= 500 ||
  status === 408 ||
  status === 429 ||
  /^(BadDigest|IncompleteBody|RequestTimeout|SlowDown)$/.test(code);
