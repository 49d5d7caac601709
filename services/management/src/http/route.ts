import type { IncomingMessage } from 'node:http'

/** Returns the pattern of the route that serves the request, or `none`. */
export function routeOf(request: IncomingMessage & { route?: unknown }): string {
  const { route } = request
  if (typeof route !== 'object' || route === null || !('path' in route)) return 'none'
  return typeof route.path === 'string' ? route.path : 'none'
}
