/**
 * What a request's headers say, read in one pass with one callback that is made once. The HTTP parser lets through two
 * different content-lengths, an empty one, and any transfer-encoding; behind a lax proxy these smuggle a second request, so
 * a request that is not framed in the one plain way is not read at all.
 */

import type { HttpRequest } from 'uWebSockets.js'

export class Head {
  authorization = ''
  origin = ''
  /** -1: none given. */
  contentLength = -1
  isWellFramed = true
  /** The values of the resolver's headers, in its order; '' for absent, repeats joined by commas. */
  readonly forwarded: string[]
  readonly #forwardedNames: readonly string[]
  readonly #visit: (name: string, value: string) => void

  constructor(forwardedNames: readonly string[], readsOrigin: boolean) {
    this.#forwardedNames = forwardedNames
    this.forwarded = forwardedNames.map(() => '')
    this.#visit = (name, value) => {
      switch (name) {
        case 'authorization':
          // Two of them are neither.
          this.authorization = this.authorization === '' ? value : 'repeated'
          return
        case 'content-length':
          this.#readLength(value)
          return
        case 'transfer-encoding':
          this.isWellFramed = false
          return
        case 'origin':
          if (readsOrigin) this.origin = value
          return
        default:
          if (forwardedNames.length > 0) this.#readForwarded(name, value)
      }
    }
  }

  /** Forgets the request before. The fields hold until the next call. */
  read(request: HttpRequest): void {
    this.authorization = ''
    this.origin = ''
    this.contentLength = -1
    this.isWellFramed = true
    if (this.forwarded.length > 0) this.forwarded.fill('')
    request.forEach(this.#visit)
  }

  #readLength(value: string): void {
    if (this.contentLength >= 0 || !/^\d{1,9}$/.test(value)) this.isWellFramed = false
    else this.contentLength = Number(value)
  }

  #readForwarded(name: string, value: string): void {
    const index = this.#forwardedNames.indexOf(name)
    if (index < 0) return
    const before = this.forwarded[index]
    this.forwarded[index] = before === '' || before === undefined ? value : `${before},${value}`
  }
}
