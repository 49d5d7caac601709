/**
 * Connects to the receivers of webhooks (docs/api.md#w6). A name is resolved once, all its addresses are checked, and the connection is
 * made to a checked address. A later change of the name's addresses therefore has no effect.
 */

import { promises as dns } from 'node:dns'
import { isIP, type Socket } from 'node:net'
import { callbackify } from 'node:util'

import { buildConnector } from 'undici'

import { isAllowedAddress, type WebhookNetwork } from './network.ts'

const CONNECT_TIMEOUT_MS = 5_000
/**
 * The options of the resolver, with the timeout in milliseconds. Names have a separate resolver, because slow lookups would occupy the few
 * threads of the system's resolver.
 */
const RESOLVE = { timeout: 2_000, tries: 2 }
const MAX_ADDRESSES = 16

export type Resolve = (name: string) => Promise<string[]>

/** Reports that no request is sent, because an address of the host, the port or the protocol is not allowed. */
export class BlockedAddress extends Error {
  override readonly name = 'BlockedAddress'

  constructor(host: string) {
    super(`${host} has an address to which webhooks may not be sent.`)
  }
}

/**
 * Returns a function that resolves names with the DNS servers of the system. With `usesHostsFile`, a name that these servers do not resolve
 * is also looked up in the hosts file.
 */
export function createResolve(usesHostsFile: boolean): Resolve {
  const resolver = new dns.Resolver(RESOLVE)
  return async (name) => {
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    if (addresses.length > 0 || !usesHostsFile) return addresses
    return (await dns.lookup(name, { all: true })).map(({ address }) => address)
  }
}

/**
 * Returns an address to connect to. Throws BlockedAddress when any address of the name is not allowed, because the name of a public service
 * has only public addresses.
 */
async function checkedAddress(
  { protocol, port, hostname }: buildConnector.Options,
  network: WebhookNetwork,
  resolve: Resolve,
): Promise<{ host: string; address: string }> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const isHttps = protocol === 'https:'
  const isAllowedPort = network.allowedPorts?.includes(Number(port) || (isHttps ? 443 : 80)) ?? true
  if (!isAllowedPort || (!isHttps && !network.allowsHttp)) throw new BlockedAddress(host)
  const addresses = isIP(host) === 0 ? (await resolve(host)).slice(0, MAX_ADDRESSES) : [host]
  const [address] = addresses
  if (address === undefined) throw new Error(`The name ${host} has no address.`)
  if (!addresses.every((one) => isAllowedAddress(one, network))) throw new BlockedAddress(host)
  return { host, address }
}

/** Returns the function with which undici connects. `connect` makes the connection to an address. */
export function createConnector(
  network: WebhookNetwork,
  resolve: Resolve,
  connect: buildConnector.connector = buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false }),
): buildConnector.connector {
  const connectTo = (options: buildConnector.Options) =>
    new Promise<Socket>((fulfil, reject) => {
      connect(options, (error, socket) => (error === null ? fulfil(socket) : reject(error)))
    })
  const connectChecked = callbackify(async (options: buildConnector.Options): Promise<Socket> => {
    const { host, address } = await checkedAddress(options, network, resolve)
    const name = host === address ? {} : { servername: host }
    const socket = await connectTo({ ...options, ...name, hostname: address })
    if (isAllowedAddress(socket.remoteAddress ?? '', network)) return socket
    socket.destroy()
    throw new BlockedAddress(host)
  })
  return (options, callback) =>
    connectChecked(options, (error, socket) => (error === null ? callback(null, socket) : callback(error, null)))
}
