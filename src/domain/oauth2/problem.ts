// OAuth 2 errors as defined by RFC 6749 5.2, 4.1.2.1, RFC 7591 3.2.2 and RFC 8707.

export type OAuth2ErrorCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "unsupported_response_type"
  | "invalid_scope"
  | "invalid_target"
  | "access_denied"
  | "invalid_redirect_uri"
  | "invalid_client_metadata"
  | "temporarily_unavailable";

export class OAuth2Problem extends Error {
  override readonly name = "OAuth2Problem";
  readonly code: OAuth2ErrorCode;

  /** `description` is for developers, in ASCII, without quotes. */
  constructor(code: OAuth2ErrorCode, description: string) {
    super(description);
    this.code = code;
  }
}
