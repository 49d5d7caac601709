/** Replaces `node:net` in browsers. Contains only the function that `@keyward/address` imports. */

import ipaddr from 'ipaddr.js'

/** Returns whether the text is an IPv6 address in a form of RFC 4291, without a zone id. */
export function isIPv6(text: string): boolean {
  return !text.includes('%') && ipaddr.IPv6.isValid(text)
}
