/** Which web origins may call from a browser. Without any, no answer mentions origins and OPTIONS is no method. */

import type { HttpResponse } from 'uWebSockets.js'

const PREFLIGHT_SECONDS = '7200'

/** A client that keeps an offline file takes the time of day from `date`, and waits for as long as it is told to. */
const EXPOSED = 'date, retry-after'

export class Cors {
  readonly isOn: boolean
  readonly #origins: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
    this.isOn = origins.length > 0
  }

  /** What `access-control-allow-origin` is to say, '' for nothing. */
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
