/**
 * Describes why a request failed without a response. A browser gives a page no reason, so that a missing CORS header
 * looks like a dead network; the description names both.
 */

/** Returns a sentence for the app's developer. `origin` is the service's; `error` is what `fetch` threw. */
export function describeFailure(origin: string, error: unknown): string {
  const page = pageOrigin()
  if (page === null || page === origin) return `No connection to ${origin}: ${reasonOf(error)}.`
  return (
    `No connection to ${origin}; browsers do not give pages the reason. If the network works, ` +
    `the service's CORS_ORIGINS may not contain ${page}, the origin of this page.`
  )
}

/** Returns the origin of the page or worker that runs this; null outside browsers. */
function pageOrigin(): string | null {
  // Node's types have no `location`.
  const location: unknown = Reflect.get(globalThis, 'location')
  const isLocation = typeof location === 'object' && location !== null && 'origin' in location
  return isLocation && typeof location.origin === 'string' ? location.origin : null
}

/** Returns the code or message of the innermost error: `fetch` puts the reason, such as ECONNREFUSED, into the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonOf(error.cause)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message.replace(/\.$/, '')
}
