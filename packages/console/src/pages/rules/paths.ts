/** The paths of the screens for rule sets. The name of a set may contain any character, so it is a query parameter. */

export function setPath(name: string): string {
  return `/rules/set?${new URLSearchParams({ name }).toString()}`
}

export function replacePath(name: string): string {
  return `/rules/set/replace?${new URLSearchParams({ name }).toString()}`
}
