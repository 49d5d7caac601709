/** Names the route of a request for logs and metrics. */

import type { Request } from 'express'

/** Returns the pattern of the route that serves the request, or `none`. */
export function routeOf(request: Request): string {
  const route: unknown = request.route
  if (typeof route !== 'object' || route === null || !('path' in route)) return 'none'
  return typeof route.path === 'string' ? route.path : 'none'
}
