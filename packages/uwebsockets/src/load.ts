/** Chooses a release of uWebSockets.js: tries one package after the other, from the newest to the oldest. */

import type * as Current from '@uwsjs/core'

/** The functions of uWebSockets.js that Keyward uses. The type declarations of the package lack `_cfg`. */
interface Library extends Pick<typeof Current, 'App' | 'us_listen_socket_close' | 'us_socket_local_port'> {
  _cfg(key: 'silent'): void
}

interface Release {
  /** The value of `UWEBSOCKETS_RELEASE` that selects this release. */
  readonly choice: string
  /** The name in logs and error messages. A test compares its version with the catalog of pnpm-workspace.yaml. */
  readonly name: string
  /** Whether `endWithoutBody` can close the connection after a response to HEAD. The previous release waits for the body of this response. */
  readonly closesAfterHead: boolean
  readonly load: () => Promise<unknown>
}

/** The releases from the newest to the oldest. */
export const RELEASES: readonly Release[] = [
  { choice: 'current', name: 'uWebSockets.js 20.69.0', closesAfterHead: true, load: () => import('@uwsjs/core') },
  {
    choice: 'previous',
    name: 'uWebSockets.js of uws-pack 20.0.8',
    closesAfterHead: false,
    load: () => import('uWebSockets.js'),
  },
]

export interface Loaded<T> {
  readonly library: T
  /** The name of the loaded release. */
  readonly release: string
  readonly closesAfterHead: boolean
  /** The reason why this machine cannot load a newer release, as one sentence for each newer release. */
  readonly notLoaded: readonly string[]
}

/**
 * Loads the newest of `releases` that this machine can load. With a `choice`, loads only the chosen release. Rejects with all
 * reasons if no release can be loaded.
 */
export async function loadNewest<T>(
  choice: string | undefined,
  isExpected: (value: unknown) => value is T,
  releases: readonly Release[] = RELEASES,
): Promise<Loaded<T>> {
  const candidates = choice === undefined || choice === '' ? releases : releases.filter((one) => one.choice === choice)
  if (candidates.length === 0) {
    const choices = releases.map((one) => one.choice).join(' or ')
    throw new Error(`UWEBSOCKETS_RELEASE must be ${choices}; got "${choice}".`)
  }
  const notLoaded: string[] = []
  for (const { name, load, closesAfterHead } of candidates)
    try {
      const library = await load()
      if (isExpected(library)) return { library, release: name, closesAfterHead, notLoaded }
      notLoaded.push(`${name} lacks functions that Keyward uses.`)
    } catch (error) {
      notLoaded.push(`${name} cannot be loaded: ${causeOf(error)}`)
    }
  throw new Error(notLoaded.join('\n'))
}

/** Returns the line of an error's message that states the cause. Both packages write the original error below their own text. */
function causeOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const [first = ''] = text.split('\n', 1)
  return text.split('\n').find((line) => line.startsWith('Error: ')) ?? first
}

export function isLibrary(value: unknown): value is Library {
  const names = ['App', '_cfg', 'us_listen_socket_close', 'us_socket_local_port']
  return names.every((name) => typeof Reflect.get(Object(value), name) === 'function')
}
