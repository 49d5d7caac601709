/**
 * What a request's headers say, read in one pass with one callback that is made once. The HTTP parser lets through two
 * different content-lengths, an empty one, and any transfer-encoding; behind a lax proxy these smuggle a second request, so
 * a request that is not framed in the one plain way is not read at all.
 */

import type { HttpRequest } from 'uWebSockets.js'

const AUTHORIZATION = 'authorization'
const CONTENT_LENGTH = 'content-length'
const TRANSFER_ENCODING = 'transfer-encoding'
const ORIGIN = 'origin'

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
      // By length first: most headers are none of these, and a comparison of texts is the dearest thing here.
      switch (name.length) {
        case AUTHORIZATION.length:
          // Two of them are neither.
          if (name === AUTHORIZATION) this.authorization = this.authorization === '' ? value : 'repeated'
          break
        case CONTENT_LENGTH.length:
          if (name === CONTENT_LENGTH) this.#readLength(value)
          break
        case TRANSFER_ENCODING.length:
          if (name === TRANSFER_ENCODING) this.isWellFramed = false
          break
        case ORIGIN.length:
          if (readsOrigin && name === ORIGIN) this.origin = value
          break
        default:
      }
      if (forwardedNames.length > 0) this.#readForwarded(name, value)
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
    let length = value.length === 0 || value.length > 9 || this.contentLength >= 0 ? -1 : 0
    for (let i = 0; i < value.length && length >= 0; i++) {
      const digit = value.charCodeAt(i) - 48
      length = digit >= 0 && digit <= 9 ? length * 10 + digit : -1
    }
    if (length < 0) this.isWellFramed = false
    else this.contentLength = length
  }

  #readForwarded(name: string, value: string): void {
    const index = this.#forwardedNames.indexOf(name)
    if (index < 0) return
    const before = this.forwarded[index]
    this.forwarded[index] = before === '' || before === undefined ? value : `${before},${value}`
  }
}
