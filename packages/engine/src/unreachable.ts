/** Ends a switch over a union: a case that is not handled does not compile, and throws if it comes all the same. */
export function unreachable(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`)
}
