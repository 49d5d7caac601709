/**
 * Reads the headers of a request in one pass. The HTTP parser accepts repeated or empty content-lengths and any
 * transfer-encoding. Behind a lax proxy these can hide a second request. Therefore a body must have either one plain
 * content-length or one transfer-encoding `chunked` (docs/api.md#h6).
 */

import type { HttpRequest } from '@keyward/uwebsockets'

const AUTHORIZATION = 'authorization'
const CONTENT_LENGTH = 'content-length'
const TRANSFER_ENCODING = 'transfer-encoding'
const CONTENT_ENCODING = 'content-encoding'
const ORIGIN = 'origin'

export class RequestHeaders {
  /** The value of the header, or '' without one. A repeated header yields a value that contains no valid credential. */
  authorization = ''
  origin = ''
  /** The length in bytes, or -1 without the header. */
  contentLength = -1
  /** Whether the body is sent in chunks. */
  isChunked = false
  /** Whether the end of the body is unambiguous. */
  isWellFramed = true
  /** Whether the body has a content-encoding other than `identity`. */
  isCompressed = false
  /**
   * The values of the headers that the origin resolver reads, in its order. A missing header is ''. Repeated headers are joined by commas.
   */
  readonly forwarded: string[]
  readonly #forwardedNames: readonly string[]
  readonly #visit: (name: string, value: string) => void

  constructor(forwardedNames: readonly string[], readsOrigin: boolean) {
    this.#forwardedNames = forwardedNames
    this.forwarded = forwardedNames.map(() => '')
    this.#visit = (name, value) => {
      // The length of the name is compared first, because comparing strings is expensive and most headers are irrelevant here.
      switch (name.length) {
        case AUTHORIZATION.length:
          if (name === AUTHORIZATION) this.authorization = this.authorization === '' ? value : 'repeated'
          break
        case CONTENT_LENGTH.length:
          if (name === CONTENT_LENGTH) this.#readLength(value)
          break
        case TRANSFER_ENCODING.length:
          if (name === TRANSFER_ENCODING) this.#readTransferEncoding(value)
          break
        case CONTENT_ENCODING.length:
          if (name === CONTENT_ENCODING && value !== '' && value.toLowerCase() !== 'identity') this.isCompressed = true
          break
        case ORIGIN.length:
          if (readsOrigin && name === ORIGIN) this.origin = value
          break
        default:
      }
      if (forwardedNames.length > 0) this.#readForwarded(name, value)
    }
  }

  /** Reads the headers of this request into the fields. They are valid until the next call. */
  read(request: HttpRequest): void {
    this.authorization = ''
    this.origin = ''
    this.contentLength = -1
    this.isChunked = false
    this.isWellFramed = true
    this.isCompressed = false
    if (this.forwarded.length > 0) this.forwarded.fill('')
    request.forEach(this.#visit)
  }

  #readLength(value: string): void {
    let length = value.length === 0 || value.length > 9 || this.contentLength >= 0 ? -1 : 0
    for (let i = 0; i < value.length && length >= 0; i++) {
      const digit = value.charCodeAt(i) - 48
      length = digit >= 0 && digit <= 9 ? length * 10 + digit : -1
    }
    if (length < 0 || this.isChunked) this.isWellFramed = false
    else this.contentLength = length
  }

  #readTransferEncoding(value: string): void {
    if (value !== 'chunked' || this.isChunked || this.contentLength >= 0) this.isWellFramed = false
    this.isChunked = true
  }

  #readForwarded(name: string, value: string): void {
    const index = this.#forwardedNames.indexOf(name)
    if (index < 0) return
    const before = this.forwarded[index]!
    this.forwarded[index] = before === '' ? value : `${before},${value}`
  }
}
