/**
 * Describes why a request got no response. Browsers hide the reason from pages, so the description names both possible causes: the network
 * and a missing CORS header.
 */

/** Returns a description for the developer. `origin` is the origin of the service, and `error` the error of `fetch`. */
export function describeFailure(origin: string, error: unknown): string {
  const page = pageOrigin()
  if (page === null || page === origin) return `No connection to ${origin}: ${reasonOf(error)}.`
  return (
    `No connection to ${origin}. Browsers hide the reason from pages. If the network works, ` +
    `the service's KEYWARD_CORS_ORIGINS may not contain ${page}, the origin of this page.`
  )
}

/** Returns the origin of the current page or worker, or null outside browsers. */
function pageOrigin(): string | null {
  // The types of Node have no `location`.
  const location: unknown = Reflect.get(globalThis, 'location')
  const isLocation = typeof location === 'object' && location !== null && 'origin' in location
  return isLocation && typeof location.origin === 'string' ? location.origin : null
}

/** Returns the code or message of the innermost cause, which contains the reason why `fetch` failed. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonOf(error.cause)
  if ('code' in error && typeof error.code === 'string') return error.code
  // Node rejects a response with status 407 with an empty message.
  return error.message.replace(/\.$/, '') || 'the request failed without a reason; a proxy may require authentication'
}
