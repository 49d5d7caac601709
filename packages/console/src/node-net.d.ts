/** Declares the function of Node for which the build uses `api/net.ts`. */

declare module 'node:net' {
  export function isIPv6(text: string): boolean
}
