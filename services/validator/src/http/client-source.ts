/** The facts of a request that the client resolver asks for. The peer is looked up when asked, since that is a system call. */

import { type Address, type ClientResolver, type ClientSource, readAddressBytes } from '@keyward/address'

import type { Exchange } from './exchange.ts'

export class ExchangeSource implements ClientSource {
  readonly #names: readonly string[]
  #exchange: Exchange | null = null

  constructor(resolver: ClientResolver) {
    this.#names = resolver.headers
  }

  /** Used again for every request. */
  of(exchange: Exchange): this {
    this.#exchange = exchange
    return this
  }

  header(name: string): string {
    return this.#exchange?.forwarded[this.#names.indexOf(name)] ?? ''
  }

  peer(out: Address): void {
    if (this.#exchange) readAddressBytes(new Uint8Array(this.#exchange.response.getRemoteAddress()), out)
  }
}
