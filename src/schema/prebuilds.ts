// The built-in owner of workspaces that are kept ready (facts/platform 2.8). Nobody can sign in as it.
export const PREBUILDS_USER_ID = "c42fdf75-3097-471c-8c33-fb52454d81c0";
