/** The paths of the screens of sets. Names contain any characters, so they are parameters. */

export function setPath(name: string): string {
  return `/rules/set?${new URLSearchParams({ name }).toString()}`
}

export function replacePath(name: string): string {
  return `/rules/set/replace?${new URLSearchParams({ name }).toString()}`
}
