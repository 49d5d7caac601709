/** Allows web pages of the configured origins to call the API (docs/api.md#h9). Without origins, CORS is off. */

import type { HttpResponse } from '@keyward/uwebsockets'

const PREFLIGHT_SECONDS = '7200'

/** The headers that pages may read. A client with an offline file needs the time in `date` and the delay in `retry-after`. */
const EXPOSED = 'date, retry-after, keyward-signature'

export class Cors {
  readonly isOn: boolean
  readonly #origins: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
    this.isOn = origins.length > 0
  }

  /** Returns the value of `access-control-allow-origin`, or '' if the origin is not allowed. */
  allows(origin: string): string {
    if (this.#origins.has('*')) return '*'
    return this.#origins.has(origin) ? origin : ''
  }

  write(response: HttpResponse, allowOrigin: string): void {
    response.writeHeader('access-control-allow-origin', allowOrigin)
    response.writeHeader('access-control-expose-headers', EXPOSED)
    response.writeHeader('vary', 'origin')
  }

  writePreflight(response: HttpResponse, allowMethods: string): void {
    response.writeHeader('access-control-allow-methods', allowMethods)
    response.writeHeader('access-control-allow-headers', 'authorization, content-type')
    response.writeHeader('access-control-max-age', PREFLIGHT_SECONDS)
  }
}
