// Declares the server modules that the schemas import. The app uses only the types of the schemas, so none of these modules is loaded in
// the browser.
declare const Bun: any;
declare const Buffer: any;
declare module "node:crypto" {
  export const randomBytes: any;
  export const timingSafeEqual: any;
}
