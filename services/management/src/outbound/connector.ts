/**
 * Connects webhooks. A name is resolved first, every address of it is checked, and the connection is made to a checked address, so that
 * a name that resolves differently a moment later changes nothing (docs/api.md#w6).
 */

import { promises as dns } from 'node:dns'
import { isIP, type Socket } from 'node:net'
import { callbackify } from 'node:util'

import { buildConnector } from 'undici'

import { isAllowedAddress, type WebhookNetwork } from './network.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** Names have their own resolver, because that of the system runs in a few threads that slow names would fill. */
const RESOLVE = { timeout: 2_000, tries: 2 }
const MAX_ADDRESSES = 16

export type Resolve = (name: string) => Promise<string[]>

/** The connection is not made, because the address is not allowed. */
export class BlockedAddress extends Error {
  override readonly name = 'BlockedAddress'

  constructor(host: string) {
    super(`${host} has an address to which webhooks may not be sent.`)
  }
}

/** Resolves names with the servers of the system. In allowed networks, names may also be in its file of hosts. */
export function createResolve(usesHostsFile: boolean): Resolve {
  const resolver = new dns.Resolver(RESOLVE)
  return async (name) => {
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    if (addresses.length > 0 || !usesHostsFile) return addresses
    return (await dns.lookup(name, { all: true })).map(({ address }) => address)
  }
}

/** Returns an address to connect to. Throws BlockedAddress when one is not allowed: no public service has such a name. */
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

/** Returns the function that undici connects with. `connect` makes the connection to an address. */
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
    // The address that is really connected to.
    if (isAllowedAddress(socket.remoteAddress ?? '', network)) return socket
    socket.destroy()
    throw new BlockedAddress(host)
  })
  return (options, callback) =>
    connectChecked(options, (error, socket) => (error === null ? callback(null, socket) : callback(error, null)))
}
