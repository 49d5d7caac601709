/**
 * Gives the origin resolver access to a request. The address of the peer is read on demand, because reading it takes a system
 * call.
 */

import { type Address, type OriginResolver, type OriginSource, readAddressBytes } from '@keyward/address'

import type { Exchange } from './exchange.ts'

export class ExchangeSource implements OriginSource {
  readonly #names: readonly string[]
  /** The request that was last passed to `of`. */
  #exchange: Exchange | null = null

  constructor(resolver: OriginResolver) {
    this.#names = resolver.headers
  }

  /** Returns this source, which then reads the given request until the next call. */
  of(exchange: Exchange): this {
    this.#exchange = exchange
    return this
  }

  header(name: string): string {
    return this.#exchange?.forwarded[this.#names.indexOf(name)] ?? ''
  }

  get isTrusted(): boolean {
    return this.#exchange?.isFromUnixSocket === true
  }

  peer(out: Address): void {
    if (this.#exchange) readAddressBytes(new Uint8Array(this.#exchange.native.getRemoteAddress()), out)
  }
}
